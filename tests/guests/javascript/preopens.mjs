// jco reads WIT files through its shims of WASI (npm installs several copies), which open no directory of their own.
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";

const modules = `${process.cwd()}/node_modules/@bytecodealliance`;
for (const user of ["", "/jco/node_modules/@bytecodealliance", "/jco-transpile/node_modules/@bytecodealliance"]) {
  const shim = `${modules}${user}/preview2-shim/dist/nodejs/filesystem.js`;
  if (existsSync(shim)) (await import(pathToFileURL(shim)))._setPreopens({ "/": "/" });
}
