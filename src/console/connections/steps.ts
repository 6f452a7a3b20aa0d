// The steps of a login at a connection that is tried, as its page shows them. No secret of the connection, and none that was
// received, is in any of them.
import { isNamedSecret } from '../../records/secrets.ts';
import { jsonOf } from '../../runtime/json.ts';
import type { ScriptFailure, ScriptLine, ScriptUsage } from '../../scripts/limits.ts';
import { withoutSecrets } from '../../scripts/scripts.ts';

/** A name and what it has, as text. */
type Shown = readonly [name: string, value: string];

export type Step =
  | { kind: 'redirect'; method: 'GET' | 'POST'; address: string; values: Shown[] }
  | { kind: 'answer'; values: Shown[] }
  | {
      kind: 'request';
      method: string;
      address: string;
      status?: number;
      failure?: string;
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

/** Characters of an answer, or a value, that are shown. */
const LONGEST = 20_000;

/** In place of a secret. */
const HIDDEN = '•••';

/** Names of values that nobody is shown beside credentials: what stands for a login. */
const OF_LOGIN =
  /^code$|^code_verifier$|^state$|^nonce$|assertion|^client_info$|^SAMLResponse$|^RelayState$|private|signing_key|decryptionKey/i;
/** Of those, what says something of a credential, and is none. */
const PLAIN = new Set(['client_assertion_type', 'credential_type']);

/** Whether what a name has is shown to nobody. */
function isSecretName(name: string): boolean {
  return (isNamedSecret(name) || OF_LOGIN.test(name)) && !PLAIN.has(name);
}

/** What is not to be shown, as it is met on the way. */
export interface Secrets {
  /** Notes the texts of a value that are secrets by their names. */
  note(value: unknown): void;
  /** A text without any of them. */
  without(text: string): string;
}

/** Shorter ones are words. Characters. */
const SHORTEST = 4;

/** @param known those there are from the start. */
export function createSecrets(known: readonly string[]): Secrets {
  const all = new Set(known.filter((one) => one.length >= SHORTEST));
  const note = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'string' && isSecretName(name) && member.length >= SHORTEST) all.add(member);
      note(member);
    }
  };
  // The longest first: a secret may have another in it.
  const ordered = () => [...all].sort((a, b) => b.length - a.length);
  return { note, without: (text) => withoutSecrets(text, ordered()) };
}

/** Parameters as they are shown. */
export function shownValues(values: Readonly<Record<string, string>>, secrets: Secrets): Shown[] {
  return Object.entries(values).map(([name, value]) => [
    name,
    isSecretName(name) ? HIDDEN : cut(secrets.without(value)),
  ]);
}

/** An address without its query and without what is secret in it, and the query as values. */
export function shownAddress(address: string, secrets: Secrets): { address: string; values: Shown[] } {
  const url = new URL(address);
  const values = shownValues(Object.fromEntries(url.searchParams), secrets);
  return { address: cut(secrets.without(`${url.origin}${url.pathname}`)), values };
}

/** A body as it is shown: JSON in lines, without what is secret by its name; other texts as they are. */
export function shownBody(text: string, secrets: Secrets): string {
  const parsed = objectOf(text) ?? formOf(text);
  if (parsed === undefined) return cut(secrets.without(text));
  secrets.note(parsed);
  return shownJson(parsed, secrets);
}

/** A value as JSON in lines, without secrets. */
export function shownJson(value: unknown, secrets: Secrets): string {
  const text = JSON.stringify(
    value,
    (name, member) => (typeof member === 'string' && isSecretName(name) ? HIDDEN : member),
    2,
  );
  return cut(secrets.without(text ?? 'null'));
}

function objectOf(text: string): object | undefined {
  const value = jsonOf(text);
  return typeof value === 'object' && value !== null ? value : undefined;
}

/** Some token endpoints answer with a form. */
function formOf(text: string): object | undefined {
  if (!/^[\w.~%+-]+=[^\s<>]*$/.test(text.trim())) return undefined;
  return Object.fromEntries(new URLSearchParams(text.trim()));
}

const cut = (text: string) => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);
