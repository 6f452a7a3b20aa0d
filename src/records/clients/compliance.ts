// All rules of the compliance levels, in one table that is applied to the tenant file and the Management API, to
// authorization requests, and to every issued token.

import {
  CLIENT_RULES,
  isAlgorithm,
  isGrant,
  isHeld,
  type ProfiledClient,
  type Rule,
} from './client-compliance.ts';
import { type Profile, profileOf, STANDARDS } from './compliance-levels.ts';

/** An authorization request: its parameters and how they were sent. */
export interface ProfiledRequest {
  parameters: Readonly<Record<string, unknown>>;
  isPushed: boolean;
  /** Whether the parameters are from a request object whose signature was verified. */
  isSigned: boolean;
}

const wordsOf = (value: unknown): string[] => (typeof value === 'string' ? value.split(' ') : []);

const isGiven = (value: unknown): boolean => typeof value === 'string' && value !== '';

const isJarm = (mode: unknown): boolean => typeof mode === 'string' && /(^|\.)jwt$/.test(mode);

export const REQUEST_RULES: readonly Rule<ProfiledRequest>[] = [
  {
    name: 'pushed',
    demand: 'the request is pushed (RFC 9126)',
    clauses: { fapi1: 'Part 2 §5.2.2 (1)', fapi2: '§5.3.2.2 (2, 3)' },
    isMet: ({ isPushed }) => isPushed,
  },
  {
    name: 'signed',
    demand: 'the request is a signed request object (RFC 9101)',
    clauses: { fapi1: 'Part 2 §5.2.2 (1, 10)', signing: '§5.3.1' },
    isMet: ({ isSigned }) => isSigned,
  },
  {
    name: 'response type',
    demand: 'response_type is code (FAPI 1.0: with a signed response; or code id_token)',
    clauses: { fapi1: 'Part 2 §5.2.2 (2)', fapi2: '§5.3.2.2 (1)' },
    isMet: ({ parameters: { response_type: type, response_mode: mode } }, profile) => {
      if (!isHeld(profile, 'fapi1')) return type === 'code';
      return wordsOf(type).sort().join(' ') === 'code id_token' || (type === 'code' && isJarm(mode));
    },
  },
  {
    name: 'signed response',
    demand: 'the response is signed (response_mode jwt)',
    clauses: { signing: '§5.4.1' },
    isMet: ({ parameters }) => isJarm(parameters.response_mode),
  },
  {
    name: 'PKCE',
    demand: 'there is a code_challenge of the method S256 (RFC 7636)',
    clauses: { fapi1: 'Part 2 §5.2.2 (18)', fapi2: '§5.3.2.2 (5)' },
    isMet: ({ parameters }) =>
      isGiven(parameters.code_challenge) && parameters.code_challenge_method === 'S256',
  },
  {
    name: 'redirect_uri',
    demand: 'there is a redirect_uri',
    clauses: { fapi1: 'Part 1 §5.2.2 (9)', fapi2: '§5.3.2.2 (6)' },
    isMet: ({ parameters }) => isGiven(parameters.redirect_uri),
  },
  {
    name: 'scope',
    demand: 'there is a scope',
    clauses: { fapi1: 'Part 2 §5.2.3 (8)' },
    isMet: ({ parameters }) => isGiven(parameters.scope),
  },
  {
    name: 'nonce',
    demand: 'there is a nonce with the scope openid, and a state without',
    clauses: { fapi1: 'Part 1 §5.2.2.2, §5.2.2.3' },
    isMet: ({ parameters: { scope, nonce, state } }) =>
      isGiven(wordsOf(scope).includes('openid') ? nonce : state),
  },
];

export const BACKCHANNEL_RULES: readonly Rule<Omit<ProfiledRequest, 'isPushed'>>[] = [
  {
    name: 'signed',
    demand: 'the request is a signed authentication request (CIBA Core §7.1.1)',
    clauses: { ciba: '§5.2.2 (6)' },
    isMet: ({ isSigned }) => isSigned,
  },
  {
    name: 'binding message',
    demand: 'there is a binding_message',
    clauses: { ciba: '§5.2.2 (2)' },
    isMet: ({ parameters }) => isGiven(parameters.binding_message),
  },
];

/** An access token that is about to be issued. */
interface ProfiledToken {
  boundTo: { dpop: boolean; mtls: boolean };
  /** The signature algorithm; undefined for an opaque token. */
  alg: string | undefined;
}

export const TOKEN_RULES: readonly Rule<ProfiledToken>[] = [
  {
    name: 'sender-constrained',
    demand:
      'access tokens are bound as its level says: to a client certificate (RFC 8705), or to a DPoP key (RFC 9449)',
    clauses: { fapi1: 'Part 2 §5.2.2 (5, 6)', fapi2: '§5.3.2.1 (4, 5)' },
    isMet: ({ boundTo }, { possession }) => boundTo[possession],
  },
  {
    name: 'access tokens',
    demand:
      'access tokens are opaque, or signed with PS256 or ES256 (FAPI 2.0: or EdDSA): signing_alg of the API',
    clauses: { fapi1: 'Part 2 §8.6', fapi2: '§5.4.1' },
    isMet: ({ alg }, profile) => alg === undefined || isAlgorithm(alg, profile),
  },
];

/**
 * Returns the clause of a rule for a profile, in the characters that an `error_description` may contain (RFC 6749
 * §5.2); undefined if the profile does not have the rule.
 */
export function clauseOf(
  { clauses }: Pick<Rule<never>, 'clauses'>,
  { standards }: Profile,
): string | undefined {
  const standard = standards.find((one) => clauses[one] !== undefined);
  return standard && `${STANDARDS[standard]} ${clauses[standard]}`.replaceAll('§', 'section ');
}

/** Returns the rules of a profile that `subject` breaks, in words with their clauses. */
export function brokenRules<S>(rules: readonly Rule<S>[], profile: Profile, subject: S): string[] {
  return rules.flatMap((rule) => {
    const clause = clauseOf(rule, profile);
    return clause === undefined || rule.isMet(subject, profile)
      ? []
      : [`${rule.demand.replaceAll('§', 'section ')} (${clause})`];
  });
}

/** @returns sentences; none if it has no level or complies. */
export function clientFaults(client: ProfiledClient): string[] {
  const profile = profileOf(client);
  if (profile === undefined) return [];
  return profile === null ? ['compliance_level is unknown'] : brokenRules(CLIENT_RULES, profile, client);
}

export function allowedGrants(client: Pick<ProfiledClient, 'compliance_level'>, grants: string[]): string[] {
  const profile = profileOf(client);
  if (profile === undefined) return grants;
  return profile === null ? [] : grants.filter((grant) => isGrant(grant, profile));
}
