"""A provisioner in Python, from the contract alone: no SDK.

See README.md in the directory above. `../javascript/provisioner.js` does the same in JavaScript, and a test compares what
they make of the same bundle.

The format `objects+v0`: every file `objects/NAME.json` is one Kubernetes object. The configuration may hold `labels`.
"""

import json

from componentize_py_types import Err
from wit_world.imports import content, log, output, request, types

DIRECTORY = "objects/"


def files(bundle):
    found, after = [], None
    while page := bundle.entries(DIRECTORY, after, 100):
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


def diagnostic(severity, code, message, path, help):
    location = types.Location(path, types.Position(1, 1), None, None)
    return types.Diagnostic(severity, code, message, location, [], help, None)


class Provisioner:
    def detect(self):
        return "objects+v0" if files(content.open()) else None

    def config_schema(self):
        labels = {"type": "object", "additionalProperties": {"type": "string"}}
        return json.dumps({"type": "object", "additionalProperties": False, "properties": {"labels": labels}})

    def provision(self):
        bundle = content.open()
        labels = json.loads(request.config()).get("labels", {})
        wanted, broken = [], []
        for entry in files(bundle):
            try:
                wanted.append((entry.path, json.loads(read(bundle, entry))))
            except ValueError:
                broken.append(diagnostic(types.Severity.ERROR, "InvalidJson", "is not JSON", entry.path, "fix it"))
        if broken:
            raise Err(types.Failure_InvalidContent(broken))
        for path, object in wanted:
            metadata = object["metadata"]
            metadata["labels"] = {**metadata.get("labels", {}), **labels}
            namespace = {"example.com/namespace": request.namespace()}
            metadata["annotations"] = {**metadata.get("annotations", {}), **namespace}
            id = output.emit(json.dumps(object).encode(), None, types.Location(path, None, None, None))
            if object["kind"] == "ConfigMap":
                selector = output.Selector("", "ConfigMap", None, metadata["name"], list(labels.items()))
                output.add_probe(output.Probe(selector, "has(self.data)", f"object {id} has no data", None))
        if request.serves("example.com/v1", "Ox") is False:
            warning = types.Severity.WARNING
            output.report(diagnostic(warning, "NoOxen", "the cluster serves no oxen", DIRECTORY, "install them"))
        # An answer that every host has: a feature that does not exist.
        if request.supports("oxen"):
            raise ValueError("the host offers oxen")
        properties = [output.Property("example.objects", json.dumps(len(wanted)))]
        output.describe(output.Description("objects", None, "1.0.0", properties))
        log.log(log.Level.INFO, "provisioned", [("objects", str(len(wanted)))])
