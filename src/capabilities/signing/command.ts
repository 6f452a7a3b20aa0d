// SIGNING=command: signs with a program of the operator (docs/keys.md "A program").
import type { HiddenSettings, KeyPlace } from './place.ts';
import { runProgram } from './program.ts';

interface CommandSettings extends HiddenSettings {
  /** The program and its first arguments. */
  command: readonly string[];
}

/** Makes the key place of a program. */
export function signingCommand({ command, hidden }: CommandSettings): KeyPlace {
  const [program = '', ...first] = command;
  return {
    keys: async (signal) => {
      const keys = keySetOf(await runProgram({ program, args: [...first, 'keys'], hidden, signal }));
      // The kid becomes an argument of the program, which would take it for an option.
      const option = keys.find(({ kid }) => typeof kid === 'string' && kid.startsWith('-'));
      if (option !== undefined) throw new Error(`the kid ${String(option.kid)} begins with a hyphen`);
      return keys;
    },
    sign: ({ alg, kid, data }, signal) =>
      runProgram({ program, args: [...first, 'sign', alg, kid], input: data, hidden, signal }),
  };
}

/** Returns the keys of a JWK Set (RFC 7517 §5). @throws Error when the text is no such set. */
export function keySetOf(text: Uint8Array | string): Record<string, unknown>[] {
  let set: { keys?: unknown } | null;
  try {
    set = JSON.parse(Buffer.from(text).toString('utf8')) as { keys?: unknown } | null;
  } catch {
    throw new Error('the key set is no JSON');
  }
  if (!Array.isArray(set?.keys)) throw new Error('the key set has no keys');
  return set.keys.filter((key): key is Record<string, unknown> => typeof key === 'object' && key !== null);
}
