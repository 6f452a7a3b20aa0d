// Environment variables in a tenant file: `${NAME}` and `##NAME##` in any string. A backslash escapes either, so
// that an export can be read again unchanged.
// docs/understand/decisions/management-api.md#placeholders-of-deploy-tools-are-plain-text-in-requests

type Environment = Readonly<Record<string, string | undefined>>;

const VARIABLE = /\\?(?:\$\{([A-Za-z_][A-Za-z0-9_]*)\}|##([A-Za-z_][A-Za-z0-9_]*)##)/g;

/** Replaces the variables of a document. Those that are not set are added to `faults`, with their paths. */
export function fillIn(document: unknown, env: Environment, faults: string[]): unknown {
  return mapStrings(document, '', (text, path) =>
    text.replace(VARIABLE, (whole: string, braced?: string, hashed?: string) => {
      if (whole.startsWith('\\')) return whole.slice(1);
      const name = braced ?? hashed ?? '';
      const found = env[name];
      if (found === undefined) {
        faults.push(`${path}: the environment variable ${name} is not set (the text itself is \\${whole})`);
      }
      return found ?? whole;
    }),
  );
}

/** Escapes a document so that {@link fillIn} returns it unchanged. */
export function escapeVariables(document: unknown): unknown {
  return mapStrings(document, '', (text) => text.replace(VARIABLE, (whole) => `\\${whole}`));
}

function mapStrings(value: unknown, path: string, change: (text: string, path: string) => string): unknown {
  if (typeof value === 'string') return change(value, path);
  if (Array.isArray(value)) return value.map((item, index) => mapStrings(item, `${path}[${index}]`, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      mapStrings(item, path === '' ? key : `${path}.${key}`, change),
    ]),
  );
}
