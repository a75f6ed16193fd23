"""Signing in and out, making an account from a link, changing the password."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login as start_session
from django.contrib.auth import logout as end_session
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from agents.domain import accounts, people
from agents.models import Invite
from agents.web.forms.accounts import AccountForm, PasswordForm, SignInForm
from agents.web.http import (
    HtmxRequest,
    PublicRequest,
    apply_form,
    client_address,
    safe_next,
    submitted,
)


@login_not_required
@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def login(request: PublicRequest) -> HttpResponse:
    destination = safe_next(request, resolve_url("session_list"))
    if request.user.is_authenticated:
        return redirect(destination)
    form = SignInForm(request, data=submitted(request), address=client_address(request))
    if form.is_valid():
        user = form.get_user()
        start_session(request, user)
        accounts.record_sign_in(user, form.address)
        return redirect(destination)
    if form.is_bound and not form.is_blocked:
        accounts.record_failed_sign_in(form.tried_username, form.address)
    return render(
        request,
        "agents/accounts/login.html",
        {
            "form": form,
            "next": destination,
            "needs_setup": accounts.needs_setup(),
        },
        status=429 if form.is_blocked else 422 if form.is_bound else 200,
    )


@require_POST
def logout(request: HtmxRequest) -> HttpResponse:
    end_session(request)
    return redirect("login")


@login_not_required
@sensitive_post_parameters("password", "repeated")
@never_cache
@require_http_methods(["GET", "POST"])
def setup(request: PublicRequest, token: str) -> HttpResponse:
    return _make_account(request, accounts.find_invite(token, is_setup=True))


@login_not_required
@sensitive_post_parameters("password", "repeated")
@never_cache
@require_http_methods(["GET", "POST"])
def invite_accept(request: PublicRequest, token: str) -> HttpResponse:
    return _make_account(request, accounts.find_invite(token, is_setup=False))


def _make_account(request: PublicRequest, invite: Invite | None) -> HttpResponse:
    """The form behind a link; who fills it in is signed in as the new account."""
    if invite is None:
        context = {"needs_setup": accounts.needs_setup()}
        return render(request, "agents/accounts/link_used.html", context, status=404)
    form = AccountForm(submitted(request))
    user = apply_form(
        form,
        lambda: accounts.accept_invite(
            invite,
            username=form.cleaned_data["username"],
            password=form.cleaned_data["password"],
            email=form.cleaned_data["email"],
        ),
    )
    if user is None:
        return render(
            request,
            "agents/accounts/new.html",
            {"form": form, "invite": invite},
            status=422 if form.is_bound else 200,
        )
    start_session(request, user)
    accounts.record_sign_in(user, client_address(request))
    return redirect("session_new" if user.may_start_agents else "session_list")


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "POST"])
def password_change(request: HtmxRequest) -> HttpResponse:
    form = PasswordForm(request.user, submitted(request))
    if form.is_valid():
        people.change_password(
            request.user, form.cleaned_data["new_password1"], actor=request.user
        )
        update_session_auth_hash(request, request.user)  # this browser stays
        messages.success(
            request, "Your password is changed. All other browsers are signed out."
        )
        return redirect("preferences")
    status = 422 if form.is_bound else 200
    return render(
        request, "agents/accounts/password.html", {"form": form}, status=status
    )
