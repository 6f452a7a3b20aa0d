// How large an authorization request may be: all of it is kept until its user has logged in, and anybody sends one.
import type { ParsedUrlQuery } from 'node:querystring';
import { AuthError } from '../http/errors.ts';

/** The longest parameter, characters: `state` comes back in an address, and those are cut beyond some kilobytes. */
const LONGEST = 4_096;
/** An ID token, which may say a lot of its user. */
const LONGEST_TOKEN = 8_192;
/** Names and values together, characters. */
const LONGEST_IN_ALL = 10_240;

/** @throws AuthError 400 `invalid_request`, for the browser, when a request or one of its parameters is too long. */
export function checkRequestSize(query: ParsedUrlQuery): void {
  let total = 0;
  for (const [name, value] of Object.entries(query)) {
    const length = [value ?? ''].flat().reduce((sum, one) => sum + one.length, 0);
    total += name.length + length;
    if (length <= (name === 'id_token_hint' ? LONGEST_TOKEN : LONGEST)) continue;
    throw new AuthError(400, 'invalid_request', `The parameter ${name.slice(0, 100)} is too long.`);
  }
  if (total > LONGEST_IN_ALL) throw new AuthError(400, 'invalid_request', 'The request is too long.');
}
