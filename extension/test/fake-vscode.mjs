// Just enough of the `vscode` module to load the bundle and activate it outside an editor. What
// the client library only names (classes it extends, enums it reads) is made up on demand.
import Module from "node:module";

/** A module object that records what the extension registers and shows. */
export function fakeVscode(settings = {}) {
  const registered = new Map();
  const errors = [];
  const disposable = { dispose() {} };
  const own = {
    commands: {
      registerCommand(id, handler) {
        registered.set(id, handler);
        return disposable;
      },
    },
    window: {
      createOutputChannel: () => ({ ...disposable, error() {}, info() {}, show() {} }),
      showErrorMessage(message) {
        errors.push(message);
        return Promise.resolve(undefined);
      },
    },
    workspace: {
      isTrusted: false,
      getConfiguration: () => ({ get: (key, fallback) => settings[key] ?? fallback }),
      onDidGrantWorkspaceTrust: () => disposable,
      onDidChangeConfiguration: () => disposable,
    },
    extensions: { getExtension: () => undefined },
  };
  return { module: withInventions(own), registered, errors };
}

/** Load a CommonJS file afresh with `vscode` answered by the given module. */
export function requireWith(vscode, file) {
  const original = Module._load;
  Module._load = (request, ...rest) =>
    request === "vscode" ? vscode : original.call(Module, request, ...rest);
  try {
    const require = Module.createRequire(import.meta.url);
    delete require.cache[file];
    return require(file);
  } finally {
    Module._load = original;
  }
}

function withInventions(own) {
  return new Proxy(own, {
    get(target, name) {
      if (!(name in target) && typeof name === "string") {
        target[name] = /^[A-Z]/.test(name) ? class Invented {} : withInventions({});
      }
      return target[name];
    },
  });
}
