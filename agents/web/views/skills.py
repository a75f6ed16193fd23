"""Skills of one's own: list, upload, write, change, download, delete."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import skills
from agents.models import Skill
from agents.web.forms.skills import SkillForm, SkillUploadForm
from agents.web.http import HtmxRequest, apply_form, submitted
from agents.workspaces.skill_packages import pack


@require_http_methods(["GET", "POST"])
def skill_list(request: HtmxRequest) -> HttpResponse:
    """The list; a POST uploads one."""
    form = SkillUploadForm(submitted(request), request.FILES or None)
    if request.method == "POST":
        added = apply_form(
            form, lambda: skills.add_package(request.user, form.cleaned_data["file"])
        )
        if added is not None:
            skill, was_there = added
            verb = "replaced" if was_there else "added"
            messages.success(request, f"The skill /{skill.name} is {verb}.")
            return redirect("skill_list")
    found = Skill.objects.visible_to(request.user).defer("content")
    found = found.annotate(file_count=Count("files"), bytes=Sum("files__size_bytes"))
    return render(
        request,
        "agents/skills/list.html",
        {"skills": found, "form": form},
        status=422 if form.errors else 200,
    )


@require_http_methods(["GET", "POST"])
def skill_new(request: HtmxRequest) -> HttpResponse:
    return _edit(request, Skill(owner=request.user))


@require_http_methods(["GET", "POST"])
def skill_edit(request: HtmxRequest, skill_id: UUID) -> HttpResponse:
    return _edit(request, _find(request, skill_id))


def _edit(request: HtmxRequest, skill: Skill) -> HttpResponse:
    name = skill.name
    form = SkillForm(submitted(request), skill=skill)
    if request.method == "POST":
        saved = apply_form(form, lambda: _save(form))
        if saved is not None:
            messages.success(request, f"The skill /{saved.name} is saved.")
            return redirect("skill_list")
    is_new = skill._state.adding
    context = {"form": form, "skill": None if is_new else skill, "name": name}
    status = 422 if form.errors else 200
    return render(request, "agents/skills/edit.html", context, status=status)


def _save(form: SkillForm) -> Skill:
    return skills.save_skill(form.apply(), removed=form.cleaned_data["removed"])


@require_POST
def skill_delete(request: HtmxRequest, skill_id: UUID) -> HttpResponse:
    skill = _find(request, skill_id)
    skills.delete_skill(skill)
    messages.success(request, f"The skill /{skill.name} is deleted.")
    return redirect("skill_list")


@require_GET
def skill_export(request: HtmxRequest, skill_id: UUID) -> HttpResponse:
    """SKILL.md, or with further files a ZIP of its folder."""
    name, data = pack(skills.package_of(_find(request, skill_id)))
    kind = "application/zip" if name.endswith(".zip") else "text/markdown"
    response = HttpResponse(data, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _find(request: HtmxRequest, skill_id: UUID) -> Skill:
    return get_object_or_404(Skill.objects.visible_to(request.user), pk=skill_id)
