// The results of scripts with which the next one may begin.
import type { Passing } from './messages.ts';

/** Whether a result, JSON unless the script has seen to it that it is none, is such a one. */
export function isPassing({ methods, most }: Passing, result: string | undefined): boolean {
  let commands: unknown;
  try {
    commands = JSON.parse(result ?? 'null');
  } catch {
    return false;
  }
  const isPassed = (one: Partial<{ method: string; args: unknown }> | null) =>
    methods.includes(one?.method ?? '') && Array.isArray(one?.args);
  return Array.isArray(commands) && commands.length <= most && commands.every(isPassed);
}
