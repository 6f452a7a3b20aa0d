// Size limits of authorization requests, which anybody can send and which are stored until the user has logged in.
import type { ParsedUrlQuery } from 'node:querystring';
import { AuthError } from '../http/errors.ts';

/** The most characters of a parameter; `state` is returned in a URL, whose length is limited. */
const LONGEST = 4_096;
/** The most characters of a parameter that is a JWT or JSON. */
const LONGEST_TOKEN = 8_192;
const TOKENS = ['id_token_hint', 'request', 'authorization_details'];
/** The most characters of all names and values. */
const LONGEST_IN_ALL = 10_240;

/**
 * Checks the size of a request.
 * @throws AuthError 400 `invalid_request` when the request or one of its parameters is too long.
 */
export function checkRequestSize(query: ParsedUrlQuery): void {
  let total = 0;
  for (const [name, value] of Object.entries(query)) {
    const length = [value ?? ''].flat().reduce((sum, one) => sum + one.length, 0);
    total += name.length + length;
    if (length <= (TOKENS.includes(name) ? LONGEST_TOKEN : LONGEST)) continue;
    throw new AuthError(400, 'invalid_request', `The parameter ${name.slice(0, 100)} is too long.`);
  }
  if (total > LONGEST_IN_ALL) throw new AuthError(400, 'invalid_request', 'The request is too long.');
}
