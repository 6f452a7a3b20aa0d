// The `scope` of requests and tokens.

/** The values of a scope, which single spaces separate (RFC 6749 §3.3); more of them are taken as one. */
export function scopeValues(scope: string | undefined): string[] {
  return (scope ?? '').split(' ').filter((value) => value !== '');
}
