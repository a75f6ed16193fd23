"""Prompt templates of one's own: list, make, change, delete, and fill in."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import prompt_templates
from agents.models import PromptTemplate
from agents.web.forms.messages import ComposerForm
from agents.web.forms.sessions import NewAgentForm
from agents.web.forms.templates import (
    TemplateEditForm,
    TemplateUseForm,
    field_rows,
    fields_of,
)
from agents.web.http import HtmxRequest, apply_form, submitted

from .sessions import find_operable, render_new_agent, render_session


@require_GET
def template_list(request: HtmxRequest) -> HttpResponse:
    """`?session=` names the session that the filled text is for."""
    found = PromptTemplate.objects.visible_to(request.user)
    context = {"templates": found, "session_id": _uuid(request.GET.get("session"))}
    return render(request, "agents/templates/list.html", context)


@require_http_methods(["GET", "POST"])
def template_new(request: HtmxRequest) -> HttpResponse:
    return _edit(request, PromptTemplate(owner=request.user))


@require_http_methods(["GET", "POST"])
def template_edit(request: HtmxRequest, template_id: UUID) -> HttpResponse:
    return _edit(request, _find(request, template_id))


def _edit(request: HtmxRequest, template: PromptTemplate) -> HttpResponse:
    name = template.name
    data = submitted(request)
    form = TemplateEditForm(data, template=template)
    rows = field_rows(data, template)
    if data is not None and rows.is_valid():
        saved = apply_form(form, lambda: _save(template, form, fields_of(rows)))
        if saved is not None:
            messages.success(request, f"The template “{saved.name}” is saved.")
            return redirect("template_list")
    is_refused = data is not None
    is_new = template._state.adding
    context = {
        "form": form,
        "rows": rows,
        "template": None if is_new else template,
        "name": name,
    }
    return render(
        request,
        "agents/templates/edit.html",
        context,
        status=422 if is_refused else 200,
    )


def _save(
    template: PromptTemplate, form: TemplateEditForm, fields: list[dict[str, object]]
) -> PromptTemplate:
    for name in ("name", "description", "text"):
        setattr(template, name, form.cleaned_data[name])
    template.fields = fields
    return prompt_templates.save_template(template)


@require_POST
def template_delete(request: HtmxRequest, template_id: UUID) -> HttpResponse:
    template = _find(request, template_id)
    template.delete()
    messages.success(request, f"The template “{template.name}” is deleted.")
    return redirect("template_list")


@require_http_methods(["GET", "POST"])
def template_use(request: HtmxRequest, template_id: UUID) -> HttpResponse:
    """Ask for the fields, then show the page to send from, with the filled text.

    Nothing is sent or stored here: the text stands in the form, to be looked at.
    """
    template = _find(request, template_id)
    start = {"session": _uuid(request.GET.get("session"))}
    form = TemplateUseForm(submitted(request), template=template, initial=start)
    if request.method == "POST" and form.is_valid():
        text = prompt_templates.render_template(template, form.values)
        return _show_text(request, form.cleaned_data["session"], text)
    context = {"form": form, "template": template}
    status = 422 if form.errors else 200
    return render(request, "agents/templates/use.html", context, status=status)


def _show_text(
    request: HtmxRequest, session_id: UUID | None, text: str
) -> HttpResponse:
    user = request.user
    if session_id is None:
        return render_new_agent(
            request, NewAgentForm(user=user, initial={"task": text})
        )
    session = find_operable(request, session_id)
    composer = ComposerForm(user=user, session=session, initial={"text": text})
    return render_session(request, session, composer_form=composer)


def _find(request: HtmxRequest, template_id: UUID) -> PromptTemplate:
    visible = PromptTemplate.objects.visible_to(request.user)
    return get_object_or_404(visible, pk=template_id)


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text or "")
    except ValueError:
        return None
