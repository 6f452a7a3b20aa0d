// The steps of a trial login, as its page shows them. Secrets of the connection and secrets received during the login
// are masked in all of them.

import type { ScriptFailure, ScriptLine, ScriptUsage } from '../../../capabilities/scripts/limits.ts';
import { withoutSecrets } from '../../../capabilities/scripts/scripts.ts';
import { isNamedSecret } from '../../../records/secrets.ts';
import { jsonOf } from '../../../runtime/json.ts';

/** The name of a value, and the value as text. */
export type NamedValue = readonly [name: string, value: string];

export type Step =
  | { kind: 'redirect'; method: 'GET' | 'POST'; address: string; values: NamedValue[] }
  | { kind: 'answer'; values: NamedValue[] }
  | {
      kind: 'request';
      method: string;
      address: string;
      status?: number;
      fault?: string;
      ms: number;
      text: string;
    }
  | {
      kind: 'script';
      name: string;
      printed: readonly ScriptLine[];
      used: ScriptUsage;
      failure?: ScriptFailure | undefined;
    }
  | { kind: 'profile'; id: string; text: string }
  | { kind: 'error'; error: string; text: string };

/** The maximum length of a body or value that is shown, characters. */
const MAX_LENGTH = 20_000;

/** Shown in place of a secret. */
const HIDDEN = '•••';

/** Names of values, other than credentials, that could be used to continue or repeat a login. */
const LOGIN_SECRET_NAMES =
  /^code$|^code_verifier$|^state$|^nonce$|assertion|^client_info$|^SAMLResponse$|^RelayState$|private|signing_key|decryptionKey/i;
/** Names that match but hold no secret. */
const PUBLIC_NAMES = new Set(['client_assertion_type', 'credential_type']);

/** Reports whether the value of a name is masked. */
function isSecretName(name: string): boolean {
  return (isNamedSecret(name) || LOGIN_SECRET_NAMES.test(name)) && !PUBLIC_NAMES.has(name);
}

/** Collects secrets while the login proceeds, and masks them. */
export interface Secrets {
  /** Adds the strings inside a value whose names mark them as secrets. */
  collect(value: unknown): void;
  mask(text: string): string;
}

/** The minimum length of a collected secret, characters: shorter ones occur as ordinary words. */
const MIN_SECRET_LENGTH = 4;

/** @param known the secrets that are known from the start. */
export function createSecrets(known: readonly string[]): Secrets {
  const all = new Set(known.filter((one) => one.length >= MIN_SECRET_LENGTH));
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'string' && isSecretName(name) && member.length >= MIN_SECRET_LENGTH)
        all.add(member);
      collect(member);
    }
  };
  return { collect, mask: (text) => withoutSecrets(text, [...all]) };
}

export function shownValues(values: Readonly<Record<string, string>>, secrets: Secrets): NamedValue[] {
  return Object.entries(values).map(([name, value]) => [
    name,
    isSecretName(name) ? HIDDEN : truncated(secrets.mask(value)),
  ]);
}

/** Returns an address without its query and with secrets masked, and the query's parameters as they are shown. */
export function shownAddress(address: string, secrets: Secrets): { address: string; values: NamedValue[] } {
  const url = new URL(address);
  const values = shownValues(Object.fromEntries(url.searchParams), secrets);
  return { address: truncated(secrets.mask(`${url.origin}${url.pathname}`)), values };
}

/**
 * Returns a body as it is shown: JSON and forms indented with secrets masked by name, other texts with known secrets
 * masked.
 */
export function shownBody(text: string, secrets: Secrets): string {
  const parsed = objectOf(text) ?? formOf(text);
  if (parsed === undefined) return truncated(secrets.mask(text));
  secrets.collect(parsed);
  return shownJson(parsed, secrets);
}

export function shownJson(value: unknown, secrets: Secrets): string {
  const text = JSON.stringify(
    value,
    (name, member) => (typeof member === 'string' && isSecretName(name) ? HIDDEN : member),
    2,
  );
  return truncated(secrets.mask(text ?? 'null'));
}

function objectOf(text: string): object | undefined {
  const value = jsonOf(text);
  return typeof value === 'object' && value !== null ? value : undefined;
}

/** Parses a form, in which some token endpoints answer. */
function formOf(text: string): object | undefined {
  if (!/^[\w.~%+-]+=[^\s<>]*$/.test(text.trim())) return undefined;
  return Object.fromEntries(new URLSearchParams(text.trim()));
}

const truncated = (text: string) => (text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)} …` : text);
