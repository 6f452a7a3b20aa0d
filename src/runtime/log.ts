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

/** How deep secrets are looked for: what is logged here is no deeper. */
const DEPTH = 3;

/**
 * @param level one of pino's; others mean `info`, because the log exists before the settings are checked.
 * @param destination standard output unless said otherwise.
 * @param mixin what each line says besides.
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
  // Its formatters do not see what all lines of a child say. Levels of a child's own, for which the method is generic, nobody has.
  const child: (this: Logger, bindings: object, options?: object) => Logger = log.child;
  log.child = function censored(this: Logger, bindings: object, options?: object) {
    return child.call(this, withoutSecrets(bindings), options);
  } as unknown as typeof log.child;
  return log;
}

/**
 * An entry without the values of secrets, copied where it has one. Not by pino's own `redact`, which takes longer than all
 * else of a line.
 */
function withoutSecrets<T extends object>(entry: T, depth = DEPTH): T {
  let copy: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(entry)) {
    // What is written of an error its serializer says.
    const isOpen = depth > 1 && typeof value === 'object' && value !== null && !(value instanceof Error);
    const kept = SECRETS.has(name) ? '[secret]' : isOpen ? withoutSecrets(value, depth - 1) : value;
    if (kept === value) continue;
    copy ??= (Array.isArray(entry) ? [...entry] : { ...entry }) as Record<string, unknown>;
    copy[name] = kept;
  }
  return (copy ?? entry) as T;
}

/** A path without the interaction's id, which is part of what proves the browser. */
function withoutInteraction(path: unknown): string {
  return String(path).replace(/^\/(u|authorize)\/[^/]+/, '/$1/[secret]');
}

/** An error's name, message, stack and causes; its other members may hold secrets. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
