// Segments of paths that must have a form.
import { apiError } from './errors.ts';

/** Prompts and screens are words. */
export const PROMPT = /^[a-z][a-z0-9-]{0,63}$/;

/** A segment that has its form. @throws AuthError 400 */
export function checkedSegment(value: string | undefined, pattern: RegExp, name: string): string {
  if (value !== undefined && pattern.test(value)) return value;
  throw apiError(
    400,
    `Path validation error: 'String does not match pattern ${pattern.source}' on property ${name}.`,
    'invalid_uri',
  );
}
