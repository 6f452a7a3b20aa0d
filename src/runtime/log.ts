// The process's log: JSON lines on standard output, with possible secrets removed.
import pino, { type DestinationStream, type Logger } from 'pino';

const SECRETS: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'secret',
  'client_secret',
  'signing_secret',
  'client_assertion',
  'token',
  'access_token',
  'refresh_token',
  'id_token',
  'code',
  'code_verifier',
  'passwordHash',
]);

/** How deep secrets are searched for: no log entry is nested deeper. */
const DEPTH = 3;

/**
 * Makes the log.
 * @param level one of pino's; others mean `info`, because the log exists before the settings are checked.
 * @param destination standard output by default.
 * @param mixin returns further members for each line.
 */
export function createLog(
  level: string | undefined,
  destination?: DestinationStream,
  mixin?: () => object,
): Logger {
  const log = pino(
    {
      level: level !== undefined && (level === 'silent' || level in pino.levels.values) ? level : 'info',
      formatters: { log: (entry) => withoutSecrets(entry) },
      serializers: { err: describeError, path: withoutInteraction },
      base: null,
      ...(mixin && { mixin }),
    },
    ...(destination === undefined ? [] : [destination]),
  );
  // pino's formatters do not see the bindings of a child. The method's type is generic for levels of a child's own,
  // which are not used here.
  const child: (this: Logger, bindings: object, options?: object) => Logger = log.child;
  log.child = function censored(this: Logger, bindings: object, options?: object) {
    return child.call(this, withoutSecrets(bindings), options);
  } as unknown as typeof log.child;
  return log;
}

/**
 * Returns an entry without the values of secrets; copied if it has any. pino's own `redact` takes longer than all
 * the rest of a line.
 */
function withoutSecrets<T extends object>(entry: T, depth = DEPTH): T {
  let copy: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(entry)) {
    // The serializer decides what is logged of an error.
    const isOpen = depth > 1 && typeof value === 'object' && value !== null && !(value instanceof Error);
    const censored = SECRETS.has(name) ? '[secret]' : isOpen ? withoutSecrets(value, depth - 1) : value;
    if (censored === value) continue;
    copy ??= (Array.isArray(entry) ? [...entry] : { ...entry }) as Record<string, unknown>;
    copy[name] = censored;
  }
  return (copy ?? entry) as T;
}

/** Returns a path without the interaction's id, which is part of what proves the browser. */
function withoutInteraction(path: unknown): string {
  return String(path).replace(/^\/(u|authorize)\/[^/]+/, '/$1/[secret]');
}

/** Returns an error's name, message, stack and causes; its other members may contain secrets. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
