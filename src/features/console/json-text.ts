// Reads JSON objects that people enter in a form.

import { jsonFaultAt } from '../../http/json-fault.ts';
import { checkedJson } from '../../http/server/body.ts';
import { jsonOf } from '../../runtime/json.ts';
import { sha256 } from '../../runtime/secrets.ts';

/** A fault in an entered text: the key of a message and its values. */
interface TextFault {
  key: string;
  line?: number;
  column?: number;
}

/** Returns the fault of a text that is not JSON, with its position. */
export const syntaxFault = (text: string): TextFault & { status: number } => ({
  status: 400,
  key: 'console.json.syntax',
  ...jsonFaultAt(text),
});

/** Parses an object; an empty text is an empty object. */
export function parseObject(text: string): { value: Record<string, unknown> } | { fault: TextFault } {
  if (text.trim() === '') return { value: {} };
  const value = jsonOf(text);
  if (value === undefined) return { fault: syntaxFault(text) };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: { key: 'console.json.object' } };
  try {
    return { value: checkedJson(text) as Record<string, unknown> };
  } catch {
    // Nested too deeply, or with a member name or text that every body is refused for.
    return { fault: { key: 'console.json.refused' } };
  }
}

export const formatObject = (value: unknown): string => JSON.stringify(value ?? {}, null, 2);

/** Returns a stamp of an object, from which a form detects that the object has changed since the form was opened. */
export function stampOf(value: unknown): string {
  return sha256(JSON.stringify(value ?? {})).slice(0, 22);
}

/**
 * Returns the changes between two objects, for an API that merges members and removes those that are null
 * (`user_metadata`, `app_metadata`).
 * @returns undefined when there are none.
 */
export function mergePatch(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const remaining = Object.entries(after).filter(([, value]) => value !== null);
  const removed = Object.keys(before).filter((name) => !remaining.some(([one]) => one === name));
  const changed = remaining.filter(([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value));
  if (removed.length === 0 && changed.length === 0) return undefined;
  // An empty object removes all members.
  if (remaining.length === 0) return {};
  return Object.fromEntries([...changed, ...removed.map((name): [string, null] => [name, null])]);
}
