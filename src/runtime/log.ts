// The process's log: JSON lines on standard output, with possible secrets removed.
import pino, { type DestinationStream, type Logger } from 'pino';

const SECRETS = [
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
];

/**
 * @param level one of pino's; others mean `info`, because the log exists before the settings are checked.
 * @param destination standard output unless said otherwise.
 */
export function createLog(level: string | undefined, destination?: DestinationStream): Logger {
  return pino(
    {
      level: level !== undefined && (level === 'silent' || level in pino.levels.values) ? level : 'info',
      redact: {
        paths: SECRETS.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
        censor: '[secret]',
      },
      serializers: { err: describeError, path: withoutInteraction },
      base: null,
    },
    ...(destination === undefined ? [] : [destination]),
  );
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
