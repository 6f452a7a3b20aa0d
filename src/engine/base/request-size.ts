// Size limits of authorization requests, which anybody can send and which are stored until the user has logged in.
import type { ParsedUrlQuery } from 'node:querystring';
import { AuthError } from '../../http/errors.ts';

/** The most characters of a parameter; `state` is returned in a URL, whose length is limited. */
const MAX_LENGTH = 4_096;
/** The most characters of a parameter that is a JWT or JSON. */
const MAX_TOKEN_LENGTH = 8_192;
const TOKENS = ['id_token_hint', 'request', 'authorization_details'];
/** The most characters of all names and values. */
const MAX_TOTAL_LENGTH = 10_240;

/**
 * Checks the size of a request.
 * @throws AuthError 400 `invalid_request` when the request or one of its parameters is too long.
 */
export function checkRequestSize(query: ParsedUrlQuery): void {
  let total = 0;
  for (const [name, value] of Object.entries(query)) {
    const length = [value ?? ''].flat().reduce((sum, one) => sum + one.length, 0);
    total += name.length + length;
    if (length <= (TOKENS.includes(name) ? MAX_TOKEN_LENGTH : MAX_LENGTH)) continue;
    throw new AuthError(400, 'invalid_request', `The parameter ${name.slice(0, 100)} is too long.`);
  }
  if (total > MAX_TOTAL_LENGTH) throw new AuthError(400, 'invalid_request', 'The request is too long.');
}
