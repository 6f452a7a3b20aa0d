// Tells the owners of two accounts that one has become an identity of the other, or is none any more: in the log of
// both, and by mail, in case somebody else did it.
import type { Languages } from '../../http/languages.ts';
import type { Events } from '../../tenant/events.ts';
import type { LinkedUsers } from '../../users/linking.ts';
import type { User } from '../../users/user.ts';
import { deliveryEvents } from './delivery-declaration.ts';
import type { AccountChange, Messages } from './delivery-messages.ts';

interface NoticeDependencies {
  events: Pick<Events, 'record'>;
  messages: Pick<Messages, 'post'>;
}

interface LinkRequest {
  clientId: string;
  ip: string;
  languages: Languages;
  /** The name of the connection of the identity. */
  connection: string;
}

export function recordLink(
  { events }: Pick<NoticeDependencies, 'events'>,
  { stays, goes }: LinkedUsers,
  { clientId, ip, connection }: Omit<LinkRequest, 'languages'>,
): void {
  const facts = { client_id: clientId, ip, connection };
  events.record({ ...facts, type: deliveryEvents.account_linked, user_id: stays.id, description: goes.id });
  events.record({ ...facts, type: deliveryEvents.account_absorbed, user_id: goes.id, description: stays.id });
}

/** Records a link that users made, and mails both. */
export async function reportLink(
  deps: NoticeDependencies,
  linked: LinkedUsers,
  request: LinkRequest,
): Promise<void> {
  recordLink(deps, linked, request);
  await mailOwners(deps, [linked.stays, linked.goes], 'linked', request);
}

/** An owner of an account, with the address that the account had before the change. */
type Owner = Partial<Pick<User, 'email' | 'email_verified' | 'locale'>>;

// docs/understand/decisions/users-linking.md#the-owners-of-both-accounts-are-told-of-a-link
/** Mails each address that is verified. The owner of another may be somebody else. */
export async function mailOwners(
  { messages }: Pick<NoticeDependencies, 'messages'>,
  owners: readonly Owner[],
  change: Extract<AccountChange, 'linked' | 'unlinked'>,
  { ip, languages }: Pick<LinkRequest, 'ip' | 'languages'>,
): Promise<void> {
  const locales = new Map(
    owners.flatMap(({ email, email_verified: isVerified, locale }) =>
      email !== undefined && isVerified === true ? [[email, locale] as const] : [],
    ),
  );
  for (const [to, locale] of locales)
    await messages.post('account_changed', { to, locale, change, languages, ip });
}
