// Decides from a script's result whether the next script may begin.
import type { ContinueCondition } from './messages.ts';

/**
 * Reports whether a result is a list of the expected commands. It is JSON, unless the script has replaced the function
 * that writes it.
 */
export function meetsContinueCondition(
  { methods, most }: ContinueCondition,
  result: string | undefined,
): boolean {
  let commands: unknown;
  try {
    commands = JSON.parse(result ?? 'null');
  } catch {
    return false;
  }
  const isAllowed = (one: Partial<{ method: string; args: unknown }> | null) =>
    methods.includes(one?.method ?? '') && Array.isArray(one?.args);
  return Array.isArray(commands) && commands.length <= most && commands.every(isAllowed);
}
