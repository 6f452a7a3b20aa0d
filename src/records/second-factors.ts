// What each second factor is called, where it is stored and by each published API. How it works is its `Factor` (src/factors).
import type { GuardianFactor } from './guardian.ts';

/** The names of a second factor. */
export interface SecondFactorNames {
  /** In the tenant file (`guardianFactors`). */
  name: GuardianFactor;
  /** Of its authenticators, as they are stored. */
  kind: string;
  /** In `mfa_requirements`, in actions, in enrolment tickets, and in the paths of the pages. */
  type: string;
  /** Another name by which actions may ask for it. */
  alias?: string;
  /** The ids of its authenticators begin with it. */
  prefix: string;
  /** As authentication method in the My Account API, and in messages. */
  method: string;
  /** As authentication method in the Management API. */
  managed: string;
  /** How an enrollment of it is proved, in the Management API. */
  enrollment?: string;
  /** The `multifactor` provider of a user, in the Management API. */
  provider?: string;
  /** What it proves (RFC 8176 §2); nothing where there is no word for it. */
  amr: readonly string[];
  /** It stands in for others, and is none without one. */
  recovers?: true;
}

/** The second factors by the kind of their authenticators, in the order in which they are told. */
export const SECOND_FACTORS = {
  otp: {
    name: 'otp',
    kind: 'otp',
    type: 'otp',
    prefix: 'totp',
    method: 'totp',
    managed: 'totp',
    enrollment: 'authenticator',
    provider: 'google-authenticator',
    amr: ['otp'],
  },
  sms: {
    name: 'sms',
    kind: 'sms',
    type: 'phone',
    prefix: 'sms',
    method: 'phone',
    managed: 'phone',
    enrollment: 'sms',
    amr: ['sms'],
  },
  email: {
    name: 'email',
    kind: 'email',
    type: 'email',
    prefix: 'email',
    method: 'email',
    managed: 'email',
    enrollment: 'email',
    amr: [],
  },
  push: {
    name: 'push-notification',
    kind: 'push',
    type: 'push-notification',
    alias: 'push',
    prefix: 'push',
    method: 'push-notification',
    managed: 'push',
    enrollment: 'guardian',
    amr: [],
  },
  // That a key was there, and was used (RFC 8176 §2): in hardware or not is what nobody has proved.
  'webauthn-roaming': { ...calledOnly('webauthn-roaming'), enrollment: 'webauthn-roaming', amr: ['pop'] },
  'webauthn-platform': { ...calledOnly('webauthn-platform'), enrollment: 'webauthn-platform', amr: ['pop'] },
  'recovery-code': { ...calledOnly('recovery-code'), amr: [], recovers: true },
} as const satisfies Record<string, SecondFactorNames>;

/** The kinds of authenticators. */
export type FactorKind = keyof typeof SECOND_FACTORS;

/** The names of one that is called the same everywhere. */
function calledOnly<Name extends GuardianFactor>(name: Name) {
  return { name, kind: name, type: name, prefix: name, method: name, managed: name };
}

/** All of them. */
export const ALL_SECOND_FACTORS: readonly SecondFactorNames[] = Object.values(SECOND_FACTORS);

/** The names of a stored kind; undefined for one of another release's. */
export function secondFactorOf(kind: string): SecondFactorNames | undefined {
  return ALL_SECOND_FACTORS.find((one) => one.kind === kind);
}

/** The types of authentication methods, as the My Account API has them. */
export type MethodType = 'password' | 'passkey' | (typeof SECOND_FACTORS)[FactorKind]['method'];

export const METHOD_TYPES: readonly MethodType[] = [
  'password',
  'passkey',
  ...Object.values(SECOND_FACTORS).map(({ method }) => method),
];

/** The published type of a kind of authenticators; of a kind of another release's the kind itself. */
export function methodTypeOf(kind: string): MethodType {
  return (secondFactorOf(kind)?.method ?? kind) as MethodType;
}
