"""The API's reference as a page, drawn from its OpenAPI document, and the document."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from agents.rendering.markdown import render_markdown

from .app import SCOPES, document
from .errors import error_response


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A parameter, or a field of a body or an answer."""

    name: str
    kind: str
    place: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One operation of the page."""

    anchor: str
    method: str
    path: str
    summary: str
    description: str
    scopes: list[str]
    parameters: list[Part]
    body: list[Part]
    answer: list[Part]
    answer_status: str
    answer_kind: str


@require_GET
def api_docs(request: HttpRequest) -> HttpResponse:
    found = document()
    operations = [
        _describe(found, method, path, operation)
        for path, methods in found["paths"].items()
        for method, operation in methods.items()
    ]
    context = {
        "description": render_markdown(found["info"]["description"]),
        "operations": operations,
        "scopes": SCOPES.items(),
        "errors": _fields(found, _ref("ErrorBody")),
    }
    return render(request, "agents/api/docs.html", context)


@login_not_required
@require_GET
def api_document(request: HttpRequest) -> HttpResponse:
    """Public, as what it describes is: it says nothing about this site's people."""
    return JsonResponse(document(), json_dumps_params={"indent": 1})


@csrf_exempt
@login_not_required
def api_nowhere(request: HttpRequest) -> HttpResponse:
    """Any other address below /api/."""
    message = "There is nothing at this address. Addresses end with a slash."
    return error_response(404, "not_found", message)


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _describe(
    found: dict[str, Any], method: str, path: str, operation: dict[str, Any]
) -> Described:
    status, answer = next(iter(sorted(_good(operation).items(), key=str)))
    content: dict[str, Any] = answer.get("content", {})
    kind = next(iter(content), "")
    return Described(
        anchor=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=render_markdown(operation.get("description", "")),
        scopes=[name for each in operation["security"] for name in each["TokenAuth"]],
        parameters=[_parameter(found, each) for each in operation["parameters"]],
        body=_fields(found, _schema_of(operation.get("requestBody", {}))),
        answer=_fields(found, content.get(kind, {}).get("schema", {})),
        answer_status=str(status),
        answer_kind=kind,
    )


def _good(operation: dict[str, Any]) -> dict[Any, Any]:
    responses: dict[Any, Any] = operation["responses"]
    return {status: each for status, each in responses.items() if int(status) < 400}


def _schema_of(body: dict[str, Any]) -> dict[str, Any]:
    content = body.get("content", {}).values()
    return next((each["schema"] for each in content), {})


def _parameter(found: dict[str, Any], described: dict[str, Any]) -> Part:
    return Part(
        name=described["name"],
        kind=_kind(found, described["schema"]),
        place=described["in"],
        is_required=described["required"],
    )


def _fields(found: dict[str, Any], schema: dict[str, Any]) -> list[Part]:
    schema = _resolve(found, schema)
    required = schema.get("required", [])
    return [
        Part(name=name, kind=_kind(found, each), is_required=name in required)
        for name, each in schema.get("properties", {}).items()
    ]


def _resolve(found: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    resolved: dict[str, Any] = found["components"]["schemas"][_name_in(reference)]
    return resolved


def _name_in(reference: str) -> str:
    return reference.rpartition("/")[2]


def _kind(found: dict[str, Any], schema: dict[str, Any]) -> str:
    """In words: `integer`, `one of low, medium`, `list of MessageOut`."""
    if "anyOf" in schema:
        kinds = (_kind(found, each) for each in schema["anyOf"])
        return " or ".join(dict.fromkeys(kinds))
    resolved = _resolve(found, schema)
    if "enum" in resolved:
        return "one of " + ", ".join(json.dumps(each) for each in resolved["enum"])
    if "$ref" in schema:
        return _name_in(schema["$ref"])
    if schema.get("type") == "array":
        return f"list of {_kind(found, schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "anything")
