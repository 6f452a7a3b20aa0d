// The parameter `scope` of requests and tokens.

/**
 * Returns the values of a scope. They are separated by single spaces (RFC 6749 §3.3); several spaces are accepted.
 */
export function scopeValues(scope: string | undefined): string[] {
  return (scope ?? '').split(' ').filter((value) => value !== '');
}
