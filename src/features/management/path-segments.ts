// Validation of path segments.
import { apiError } from './management-errors.ts';

/** The form of the names of prompts and screens. */
export const PROMPT = /^[a-z][a-z0-9-]{0,63}$/;

/** Returns a path segment that matches a pattern. @throws AuthError 400 if it does not. */
export function checkedSegment(value: string | undefined, pattern: RegExp, name: string): string {
  if (value !== undefined && pattern.test(value)) return value;
  throw apiError(
    400,
    `Path validation error: 'String does not match pattern ${pattern.source}' on property ${name}.`,
    'invalid_uri',
  );
}
