// The names of each second factor in the store and in the published APIs. src/features/factors has their behaviour.
import type { GuardianFactor } from './guardian.ts';

/** The names of a second factor. */
export interface SecondFactorNames {
  /** In the tenant file (`guardianFactors`). */
  name: GuardianFactor;
  /** The kind of its stored authenticators. */
  kind: string;
  /** In `mfa_requirements`, actions and enrolment tickets, and in the paths of pages. */
  type: string;
  /** Another name that actions may use. */
  alias?: string;
  /** The prefix of the ids of its authenticators. */
  prefix: string;
  /** Its authentication method in the My Account API and in messages. */
  method: string;
  /** Its authentication method in the Management API. */
  managed: string;
  /** Its type of enrollment in the Management API. */
  enrollment?: string;
  /** Its provider in a user's `multifactor`, in the Management API. */
  provider?: string;
  /** Its authentication method references (RFC 8176 §2); empty if the RFC has none that fits. */
  amr: readonly string[];
  /** Set if it can only replace another factor, and does not count as one. */
  recovers?: true;
}

/** The second factors by the kind of their authenticators, in the order in which lists show them. */
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
  // `pop` proves possession of a key. `hwk` (RFC 8176 §2) would claim that the key is in hardware, which is not
  // proved.
  'webauthn-roaming': {
    ...sameNameEverywhere('webauthn-roaming'),
    enrollment: 'webauthn-roaming',
    amr: ['pop'],
  },
  'webauthn-platform': {
    ...sameNameEverywhere('webauthn-platform'),
    enrollment: 'webauthn-platform',
    amr: ['pop'],
  },
  'recovery-code': { ...sameNameEverywhere('recovery-code'), amr: [], recovers: true },
} as const satisfies Record<string, SecondFactorNames>;

export type FactorKind = keyof typeof SECOND_FACTORS;

function sameNameEverywhere<Name extends GuardianFactor>(name: Name) {
  return { name, kind: name, type: name, prefix: name, method: name, managed: name };
}

/** All second factors. */
export const ALL_SECOND_FACTORS: readonly SecondFactorNames[] = Object.values(SECOND_FACTORS);

/** Returns the names of a stored kind; undefined for a kind of another release. */
export function secondFactorOf(kind: string): SecondFactorNames | undefined {
  return ALL_SECOND_FACTORS.find((one) => one.kind === kind);
}

/** The types of authentication methods in the My Account API. */
export type MethodType = 'password' | 'passkey' | (typeof SECOND_FACTORS)[FactorKind]['method'];

export const METHOD_TYPES: readonly MethodType[] = [
  'password',
  'passkey',
  ...Object.values(SECOND_FACTORS).map(({ method }) => method),
];

/** Returns the published type of a kind of authenticator; for a kind of another release, the kind itself. */
export function methodTypeOf(kind: string): MethodType {
  return (secondFactorOf(kind)?.method ?? kind) as MethodType;
}

/** The scopes of the MFA API: what a user's token may do with the user's own second factors. */
export const MFA_SCOPES = ['enroll', 'read:authenticators', 'remove:authenticators'] as const;
