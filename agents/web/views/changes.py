"""Changes: what a turn, or a version of the conversation, did to the files."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from agents.domain import changes
from agents.models import Run
from agents.web.http import HtmxRequest

from .sessions import find_session


@require_GET
def run_changes(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """What one turn changed."""
    visible = Run.objects.visible_to(request.user)
    run = get_object_or_404(
        visible.select_related("session", "trigger_message"), pk=run_id
    )
    taken = run.snapshots.order_by("created_at").last()
    context = {
        "session": run.session,
        "run": run,
        "changes": changes.look(lambda: changes.diff_of_run(run)),
        "skipped": taken.skipped if taken else [],
    }
    return render(request, "agents/changes/turn.html", context)


@require_GET
def session_changes(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """What one version changed since it began; `?branch=` names another one."""
    session = find_session(request, session_id)
    versions = list(session.branches.order_by("created_at"))
    wanted = request.GET.get("branch") or str(session.active_branch_id)
    branch = next((each for each in versions if str(each.pk) == wanted), None)
    if branch is None:
        raise Http404
    context = {
        "session": session,
        "versions": versions,
        "branch": branch,
        "changes": changes.look(lambda: changes.diff_of_branch(branch)),
        "turns": changes.lines_of(branch),
    }
    return render(request, "agents/changes/session.html", context)
