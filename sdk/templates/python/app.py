"""Installs the Kubernetes objects in objects/*.json, with the labels of the configuration."""

import json
import re

from componentize_py_types import Err
from wit_world.imports import content, output, request, types

FORMAT = "provisioner-template+v0"
OBJECTS = "objects/"
# Larger files are refused before they are read: memory is limited.
FILE_BYTES = 1 << 20
# Deeper values are refused before they are parsed: so is the stack.
DEPTH = 100


def files(bundle):
    found, after = [], None
    while page := bundle.entries(OBJECTS, after, 500):
        found += page
        after = page[-1].path
    return [entry for entry in found if entry.path.endswith(".json")]


def read(bundle, entry):
    data = b""
    while len(data) < entry.size:
        chunk = bundle.read(entry.path, len(data), 1 << 20)
        if not chunk:
            break
        data += chunk
    return data.decode()


def at(path):
    return types.Location(path, types.Position(1, 1), None, None)


def finding(code, message, path, help):
    return types.Diagnostic(types.Severity.ERROR, code, message, at(path), [], help, None)


def is_deep(text):
    """Whether a JSON text has arrays and objects inside each other so deeply that the parser would exhaust the stack."""
    depth = 0
    for bracket in re.findall(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', text, re.DOTALL):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket, 0)
        if depth > DEPTH:
            return True
    return False


def is_text(value):
    return isinstance(value, str) and value != ""


def load(bundle, entry, labels):
    """The object of a file, or what is wrong with the file."""
    if entry.size > FILE_BYTES:
        help = f"a file may have {FILE_BYTES}"
        return None, finding("FileTooLarge", f"has {entry.size} bytes", entry.path, help)
    try:
        text = read(bundle, entry)
        if is_deep(text):
            raise ValueError("too deep")
        object = json.loads(text, parse_constant=not_json)
    except (ValueError, RecursionError):
        return None, finding("InvalidJson", "is not JSON", entry.path, "write one JSON object, in UTF-8")

    def invalid(message):
        return None, finding("InvalidObject", message, entry.path, None)

    if not isinstance(object, dict) or not is_text(object.get("apiVersion")) or not is_text(object.get("kind")):
        return invalid("has no apiVersion or kind")
    metadata = object.get("metadata")
    if not isinstance(metadata, dict) or not is_text(metadata.get("name")):
        return invalid("has no metadata.name")
    own = metadata.get("labels") or {}
    if not isinstance(own, dict):
        return invalid("has labels that are not a map")
    if labels:
        metadata["labels"] = {**own, **labels}
    return object, None


def not_json(constant):
    raise ValueError(f"{constant} is not JSON")


class Provisioner:
    def detect(self):
        return FORMAT if files(content.open()) else None

    def config_schema(self):
        labels = {"type": "object", "additionalProperties": {"type": "string"}}
        return json.dumps({"type": "object", "additionalProperties": False, "properties": {"labels": labels}})

    def provision(self):
        bundle = content.open()
        labels = json.loads(request.config()).get("labels", {})
        found = files(bundle)
        loaded = [(entry.path, *load(bundle, entry, labels)) for entry in found]
        findings = [problem for _, _, problem in loaded if problem]
        if not found:
            findings.append(finding("NoObjects", "the directory holds no objects", OBJECTS, "add a JSON file"))
        # All findings at once, so that the author of the bundle need not search for them one by one.
        if findings:
            raise Err(types.Failure_InvalidContent(findings))
        for path, object, _ in loaded:
            output.emit(json.dumps(object).encode(), None, at(path))
