// JSON objects that people write into a form.
import { checkedJson } from '../http/body.ts';
import { jsonFaultAt } from '../http/json-fault.ts';
import { jsonOf } from '../runtime/json.ts';
import { sha256 } from '../runtime/secrets.ts';

/** What is wrong with a text: a message's key, and its values. */
interface TextFault {
  key: string;
  line?: number;
  column?: number;
}

/** What is wrong with a text that is no JSON: where. */
export const syntaxFault = (text: string): TextFault & { status: number } => ({
  status: 400,
  key: 'console.json.syntax',
  ...jsonFaultAt(text),
});

/** Reads an object; an empty text is an empty one. */
export function readObject(text: string): { value: Record<string, unknown> } | { fault: TextFault } {
  if (text.trim() === '') return { value: {} };
  const value = jsonOf(text);
  if (value === undefined) return { fault: syntaxFault(text) };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: { key: 'console.json.object' } };
  try {
    return { value: checkedJson(text) as Record<string, unknown> };
  } catch {
    // Nested too deep, or a name or text that is refused in any body.
    return { fault: { key: 'console.json.refused' } };
  }
}

/** An object as people read and edit it. */
export const writtenObject = (value: unknown): string => JSON.stringify(value ?? {}, null, 2);

/** Tells whether an object is still the one that a form was opened with. */
export function stampOf(value: unknown): string {
  return sha256(JSON.stringify(value ?? {})).slice(0, 22);
}

/**
 * What makes one object another where members are merged, and null removes one (`user_metadata`, `app_metadata`).
 * @returns undefined where they are the same.
 */
export function mergePatch(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const kept = Object.entries(after).filter(([, value]) => value !== null);
  const gone = Object.keys(before).filter((name) => !kept.some(([one]) => one === name));
  const changed = kept.filter(([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value));
  if (gone.length === 0 && changed.length === 0) return undefined;
  // With nothing left: an empty object takes all away.
  if (kept.length === 0) return {};
  return Object.fromEntries([...changed, ...gone.map((name): [string, null] => [name, null])]);
}
