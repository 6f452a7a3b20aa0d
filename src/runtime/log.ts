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

// docs/understand/decisions/operating.md#strangers-do-not-decide-how-much-the-process-logs
/** Lines of one kind in a minute, from `warn` up. Strangers cause some of them, and must not fill the disk. */
const MAX_LINES = 100;
const MINUTE_MS = 60_000;
/** pino's number of the level. */
const WARN = 40;
/** Characters. Messages of libraries quote what was sent. */
const MAX_MESSAGE_LENGTH = 500;
const MAX_STACK_LENGTH = 4_000;
/** Of any other text: paths, headers and names are as long as whoever sends them likes. */
const MAX_TEXT_LENGTH = 1_000;
const MAX_CAUSES = 4;

/**
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
      serializers: { err: (error) => describeError(error), path: withoutInteraction },
      hooks: { logMethod: limitedLines() },
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
 * Returns an entry without the values of secrets, and with no text that is too long; copied if it has any. pino's own `redact` takes longer than all
 * the rest of a line.
 */
function withoutSecrets<T extends object>(entry: T, depth = DEPTH): T {
  let copy: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(entry)) {
    // The serializer decides what is logged of an error.
    const isOpen = depth > 1 && typeof value === 'object' && value !== null && !(value instanceof Error);
    const isLong = typeof value === 'string' && value.length > MAX_TEXT_LENGTH;
    const shown = isLong ? `${value.slice(0, MAX_TEXT_LENGTH)}…` : value;
    const censored = SECRETS.has(name) ? '[secret]' : isOpen ? withoutSecrets(value, depth - 1) : shown;
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

/**
 * Returns an error's name, message, stack and causes; its other members may contain secrets. A request that was refused
 * (a status of 4xx) has no stacks: it is the sender's fault, and anybody can send many.
 */
function describeError(error: unknown, isRefusal = isRefused(error), depth = MAX_CAUSES): unknown {
  if (!(error instanceof Error)) return String(error).slice(0, MAX_MESSAGE_LENGTH);
  const { name: type, message, stack, cause } = error;
  return {
    type,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    ...(isRefusal ? {} : { stack: stack?.slice(0, MAX_STACK_LENGTH) }),
    ...(cause === undefined || depth === 0 ? {} : { cause: describeError(cause, isRefusal, depth - 1) }),
  };
}

function isRefused(error: unknown): boolean {
  const { status } = (error ?? {}) as { status?: unknown };
  return typeof status === 'number' && status >= 400 && status < 500;
}

type LogMethod = NonNullable<NonNullable<pino.LoggerOptions['hooks']>['logMethod']>;

/** Returns a hook that leaves out lines of which there are too many, and says how many at the end of the minute. */
function limitedLines(): LogMethod {
  const counts = new Map<string, number>();
  const endMinute = (log: Logger) => {
    const excess = [...counts].filter(([, count]) => count > MAX_LINES);
    counts.clear();
    for (const [line, count] of excess) {
      log.warn({ line, left: count - MAX_LINES }, 'lines of one kind were left out of the log');
    }
  };
  return function limited(args, method, level) {
    if (level >= WARN) {
      const line = String(args.findLast((one: unknown) => typeof one === 'string') ?? '');
      const count = (counts.get(line) ?? 0) + 1;
      if (counts.size === 0) setTimeout(endMinute, MINUTE_MS, this).unref();
      counts.set(line, count);
      if (count > MAX_LINES) return;
    }
    method.apply(this, args);
  };
}
