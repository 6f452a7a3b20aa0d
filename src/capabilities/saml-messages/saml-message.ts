// What all protocol messages share (SAML Core §3.2): ID, issuer, destination, time, and protection against replay.
import { type Clock, epochSeconds, SET_BACK } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import { NS } from './names.ts';
import { attribute, badMessage, childOf, isNamed, textOf, type XmlElement } from './xml.ts';

/** How far the clock of the other side may differ, seconds. */
export const SKEW = 180;
/** How long a message is valid after it was issued, seconds. */
const FRESH = 600;
const MAX_NAME_LENGTH = 1024;

export interface Envelope {
  id: string;
  /** Empty for a Response without one; its assertion has it (Profiles §4.1.4.2). */
  issuer: string;
  inResponseTo: string | undefined;
}

export interface ExpectedMessage {
  /** Local name of the message. */
  name: 'AuthnRequest' | 'LogoutRequest' | 'LogoutResponse' | 'Response';
  /** Our URL that received it. */
  destination: string;
  /** Whether it must have a Destination, as signed messages must (Bindings §3.4.5.2, §3.5.5.2). */
  destinationRequired: boolean;
  /** The wall clock, because it is compared with the sender's. */
  clock: Clock;
}

/** @throws AuthError 400 when it is another message, for another destination, too old or from the future. */
export function readEnvelope(root: XmlElement, expected: ExpectedMessage): Envelope {
  if (!isNamed(root, NS.protocol, expected.name)) {
    throw badMessage(`The SAML message is no ${expected.name}.`);
  }
  if (attribute(root, 'Version') !== '2.0') throw badMessage('Only SAML 2.0 is spoken here.');
  const id = attribute(root, 'ID') ?? '';
  if (!/^[A-Za-z_][\w.-]{0,255}$/.test(id)) throw badMessage('The SAML message has no proper ID.');
  checkDestination(attribute(root, 'Destination'), expected);
  checkFresh(attribute(root, 'IssueInstant'), expected.clock);
  const issuer = issuerOf(root);
  if (issuer === '' && expected.name !== 'Response') throw badMessage('The SAML message has no Issuer.');
  return { id, issuer, inResponseTo: attribute(root, 'InResponseTo') };
}

/**
 * Returns the Issuer of a message or an assertion; empty if it has none.
 * @throws AuthError 400 when it is too long.
 */
export function issuerOf(root: XmlElement): string {
  const issuer = childOf(root, NS.assertion, 'Issuer');
  const name = issuer === undefined ? '' : textOf(issuer).trim();
  if (name.length > MAX_NAME_LENGTH) throw badMessage('The Issuer of the SAML message is too long.');
  return name;
}

/**
 * Compares origin and path. The query is ignored, because service providers may be configured with `?connection=…`.
 */
function checkDestination(destination: string | undefined, expected: ExpectedMessage): void {
  if (destination === undefined && !expected.destinationRequired) return;
  const [received, ours] = [URL.parse(destination ?? ''), new URL(expected.destination)];
  if (received?.origin === ours.origin && received.pathname === ours.pathname) return;
  throw badMessage('The Destination of the SAML message is not this address.');
}

/** @throws AuthError 400 */
export function checkFresh(instant: string | undefined, clock: Clock): void {
  const issued = epochOf(instant);
  const now = epochSeconds(clock);
  if (issued === undefined || issued > now + SKEW || issued < now - FRESH - SKEW) {
    throw badMessage('The IssueInstant of the SAML message is missing, long ago or in the future.');
  }
}

/** Returns the epoch seconds of a dateTime (SAML Core §1.3.3: UTC); undefined when it is malformed. */
export function epochOf(instant: string | undefined): number | undefined {
  if (
    instant === undefined ||
    !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,12})?(Z|[+-]\d\d:\d\d)?$/.test(instant)
  ) {
    return undefined;
  }
  const epoch = Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(instant) ? instant : `${instant}Z`);
  return Number.isNaN(epoch) ? undefined : epoch / 1000;
}

/** Returns a dateTime in UTC with milliseconds. */
export function instantOf(epoch: number): string {
  return new Date(epoch * 1000).toISOString();
}

/** Returns an ID that cannot be guessed (SAML Core §1.3.4). */
export function newId(random: Random): string {
  return `_${random(20).toString('hex')}`;
}

/**
 * Stores that a message was used, for as long as it is valid, against replay (Profiles §4.1.4.5).
 * @param sender the client_id or connection id that the message ID belongs to.
 * @throws AuthError 400 when the sender's ID was used before.
 */
export async function refuseReplay(store: Store, clock: Clock, sender: string, id: string): Promise<void> {
  const expiresAt = epochSeconds(clock) + FRESH + 2 * SKEW + 1 + SET_BACK;
  try {
    await store.collection('samlMessages').insert({ id: `${sender}\n${id}`, expiresAt });
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) throw badMessage('This SAML message was already used.', thrown);
    throw thrown;
  }
}
