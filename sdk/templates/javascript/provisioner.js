// Installs the Kubernetes objects in objects/*.json, with the labels of the configuration.

import * as content from "chandler:provisioner/content@0.1.0";
import * as output from "chandler:provisioner/output@0.1.0";
import * as request from "chandler:provisioner/request@0.1.0";

const FORMAT = "provisioner-template+v0";
const OBJECTS = "objects/";
// Larger files are refused before they are read: memory is limited.
const FILE_BYTES = 1 << 20;
// Deeper values are refused before they are parsed: so is the stack.
const DEPTH = 100;

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
    const page = bundle.entries(OBJECTS, after, 500);
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

// Whether a JSON text has arrays and objects inside each other so deeply that the parser would exhaust the stack.
function isDeep(text) {
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (quoted) {
      if (char === "\\") i++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "[" || char === "{") depth++;
    else if (char === "]" || char === "}") depth--;
    if (depth > DEPTH) return true;
  }
  return false;
}

const isMap = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value) => typeof value === "string" && value !== "";

function at(path) {
  return { path, start: { line: 1, column: 1 }, end: undefined, pointer: undefined };
}

function finding(code, message, path, help) {
  return { severity: "error", code, message, location: at(path), related: [], help, url: undefined };
}

// The object of a file, or what is wrong with the file.
function load(bundle, entry, labels) {
  if (Number(entry.size) > FILE_BYTES) {
    return [undefined, finding("FileTooLarge", `has ${entry.size} bytes`, entry.path, `a file may have ${FILE_BYTES}`)];
  }
  let object;
  try {
    const text = read(bundle, entry);
    if (isDeep(text)) throw new Error("too deep");
    object = JSON.parse(text);
  } catch {
    return [undefined, finding("InvalidJson", "is not JSON", entry.path, "write one JSON object, in UTF-8")];
  }
  const invalid = (message) => [undefined, finding("InvalidObject", message, entry.path, undefined)];
  if (!isMap(object) || !isText(object.apiVersion) || !isText(object.kind)) return invalid("has no apiVersion or kind");
  if (!isMap(object.metadata) || !isText(object.metadata.name)) return invalid("has no metadata.name");
  if (!isMap(object.metadata.labels ?? {})) return invalid("has labels that are not a map");
  if (Object.keys(labels).length > 0) object.metadata.labels = { ...object.metadata.labels, ...labels };
  return [object, undefined];
}

export const provisioner = {
  detect() {
    return files(content.open()).length > 0 ? FORMAT : undefined;
  },

  configSchema() {
    const labels = { type: "object", additionalProperties: { type: "string" } };
    return JSON.stringify({ type: "object", additionalProperties: false, properties: { labels } });
  },

  provision() {
    const bundle = content.open();
    const { labels = {} } = JSON.parse(request.config());
    const found = files(bundle);
    const loaded = found.map((entry) => [entry.path, ...load(bundle, entry, labels)]);
    const findings = loaded.flatMap(([, , problem]) => problem ?? []);
    if (found.length === 0) findings.push(finding("NoObjects", "the directory holds no objects", OBJECTS, "add a JSON file"));
    // All findings at once, so that the author of the bundle need not search for them one by one.
    if (findings.length > 0) throw { tag: "invalid-content", val: findings };
    for (const [path, object] of loaded) output.emit(encode(JSON.stringify(object)), undefined, at(path));
  },
};
