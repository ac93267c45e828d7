// A provisioner in JavaScript, from the contract alone: no SDK. Built for QuickJS and for StarlingMonkey; see README.md in
// the directory above. `../python/app.py` does the same in Python, and a test compares what they make of the same bundle.
//
// The format `objects+v0`: every file `objects/NAME.json` is one Kubernetes object. The configuration may hold `labels`.

import * as content from "chandler:provisioner/content@0.1.0";
import * as log from "chandler:provisioner/log@0.1.0";
import * as output from "chandler:provisioner/output@0.1.0";
import * as request from "chandler:provisioner/request@0.1.0";

const DIRECTORY = "objects/";

// Engines differ in which globals they have, and in whether a u64 is a number or a BigInt.
const decode = (bytes) => {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return decodeURIComponent(escape(text));
};
const encode = (text) => Uint8Array.from(unescape(encodeURIComponent(text)), (char) => char.charCodeAt(0));

function files(bundle) {
  const found = [];
  for (let after = undefined; ; ) {
    const page = bundle.entries(DIRECTORY, after, 100);
    if (page.length === 0) return found.filter((entry) => entry.path.endsWith(".json"));
    found.push(...page);
    after = page[page.length - 1].path;
  }
}

function read(bundle, entry) {
  const u64 = typeof entry.size === "bigint" ? BigInt : Number;
  const bytes = [];
  while (bytes.length < Number(entry.size)) {
    const chunk = bundle.read(entry.path, u64(bytes.length), 1 << 20);
    if (chunk.length === 0) break;
    for (const byte of chunk) bytes.push(byte);
  }
  return decode(bytes);
}

function diagnostic(severity, code, message, path, help) {
  const location = { path, start: { line: 1, column: 1 }, end: undefined, pointer: undefined };
  return { severity, code, message, location, related: [], help, url: undefined };
}

export const provisioner = {
  detect() {
    return files(content.open()).length > 0 ? "objects+v0" : undefined;
  },

  configSchema() {
    const labels = { type: "object", additionalProperties: { type: "string" } };
    return JSON.stringify({ type: "object", additionalProperties: false, properties: { labels } });
  },

  provision() {
    const bundle = content.open();
    const { labels = {} } = JSON.parse(request.config());
    const wanted = [];
    const broken = [];
    for (const entry of files(bundle)) {
      try {
        wanted.push([entry.path, JSON.parse(read(bundle, entry))]);
      } catch (error) {
        broken.push(diagnostic("error", "InvalidJson", "is not JSON", entry.path, "fix it"));
      }
    }
    if (broken.length > 0) throw { tag: "invalid-content", val: broken };
    for (const [path, object] of wanted) {
      object.metadata.labels = { ...object.metadata.labels, ...labels };
      object.metadata.annotations = { ...object.metadata.annotations, "example.com/namespace": request.namespace() };
      const origin = { path, start: undefined, end: undefined, pointer: undefined };
      const id = output.emit(encode(JSON.stringify(object)), undefined, origin);
      if (object.kind === "ConfigMap") {
        const { name } = object.metadata;
        const selector = { group: "", kind: "ConfigMap", namespace: undefined, name, labels: Object.entries(labels) };
        const rule = "has(self.data)";
        output.addProbe({ selector, rule, message: `object ${id} has no data`, messageExpression: undefined });
      }
    }
    if (request.serves("example.com/v1", "Ox") === false) {
      output.report(diagnostic("warning", "NoOxen", "the cluster serves no oxen", DIRECTORY, "install them"));
    }
    // An answer that every host has: a feature that does not exist.
    if (request.supports("oxen")) throw new Error("the host offers oxen");
    const properties = [{ type: "example.objects", value: JSON.stringify(wanted.length) }];
    output.describe({ name: "objects", packageName: undefined, version: "1.0.0", properties });
    log.log("info", "provisioned", [["objects", `${wanted.length}`]]);
  },
};
