"""Memory: what a person's agents are told to be true, for that person alone."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from agents.conf import conf
from agents.domain import memory
from agents.models import Memory
from agents.web.forms.memory import MemoryForm, MemorySearchForm
from agents.web.http import HtmxRequest, apply_form, submitted

PAGE_SIZE = 50


@require_http_methods(["GET", "POST"])
def memory_list(request: HtmxRequest) -> HttpResponse:
    form = MemoryForm(submitted(request))
    saved = apply_form(
        form, lambda: memory.save_memory(request.user, form.cleaned_data["text"])
    )
    if saved is not None:
        messages.success(request, "Remembered.")
        return redirect("memory_list")
    search = MemorySearchForm(request.GET)
    query = search.cleaned_data.get("q", "") if search.is_valid() else ""
    found = memory.find_memories(request.user, query)
    pages = Paginator(found.select_related("source_session"), PAGE_SIZE)
    context = {
        "form": form,
        "search": search,
        "query": query,
        "page_obj": pages.get_page(request.GET.get("page")),
        "count": request.user.memories.count(),
        "limit": conf().memory_facts,
    }
    status = 422 if form.is_bound else 200
    return render(request, "agents/memory/list.html", context, status=status)


@require_http_methods(["GET", "POST"])
def memory_edit(request: HtmxRequest, memory_id: UUID) -> HttpResponse:
    fact = _fact(request, memory_id)
    form = MemoryForm(submitted(request), initial={"text": fact.text})

    def save() -> bool:
        memory.change_memory(fact, form.cleaned_data["text"])
        return True

    if apply_form(form, save):
        messages.success(request, "The fact is changed.")
        return redirect("memory_list")
    context = {"form": form, "fact": fact}
    status = 422 if form.is_bound else 200
    return render(request, "agents/memory/edit.html", context, status=status)


@require_POST
def memory_delete(request: HtmxRequest, memory_id: UUID) -> HttpResponse:
    memory.delete_memory(_fact(request, memory_id))
    messages.success(request, "Forgotten.")
    return redirect("memory_list")


def _fact(request: HtmxRequest, memory_id: UUID) -> Memory:
    return get_object_or_404(Memory.objects.visible_to(request.user), pk=memory_id)
