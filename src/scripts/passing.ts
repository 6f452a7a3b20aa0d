// The results of scripts with which the next one may begin.
import type { Passing } from './messages.ts';

/** Whether a result, JSON, is such a one. */
export function isPassing({ methods, most }: Passing, result: string | undefined): boolean {
  if (result === undefined) return false;
  const commands: unknown = JSON.parse(result);
  const isPassed = (one: Partial<{ method: string; args: unknown }> | null) =>
    methods.includes(one?.method ?? '') && Array.isArray(one?.args);
  return Array.isArray(commands) && commands.length <= most && commands.every(isPassed);
}
