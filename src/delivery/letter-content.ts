// A message as it is kept while it waits: what it is about is named, and read when it is sent.
import type { Clock } from '../runtime/clock.ts';
import type { Config } from '../tenant/config.ts';
import type { Users } from '../users/users.ts';
import type { Carried, CredentialRef, MessageKind, Notice } from './messages.ts';

/** JSON. */
export interface LetterContent
  extends Pick<
    Notice,
    | 'to'
    | 'inviter'
    | 'url'
    | 'code'
    | 'method'
    | 'change'
    | 'address'
    | 'lifetimeInSeconds'
    | 'ip'
    | 'userAgent'
  > {
  kind: MessageKind;
  /** A client_id. */
  application?: string;
  /** A connection's name. */
  connection?: string;
  /** An organization's id. */
  organization?: string;
  /** A user's id. */
  user?: string;
  languages?: readonly string[];
  /** What it carries. */
  credential?: CredentialRef;
  /** Epoch milliseconds: it is not sent after that. */
  until?: number;
  /** It comes to nobody. */
  decoy?: true;
}

/** What is kept of a message. */
export function contentOf(
  kind: MessageKind,
  notice: Notice,
  { carried, clock }: { carried?: Carried | undefined; clock: Clock },
): LetterContent {
  const { application, connection, organization, user, languages, ...plain } = notice;
  return {
    kind,
    ...plain,
    ...(application && { application: application.client_id }),
    ...(connection && { connection: connection.name }),
    ...(organization && { organization: organization.id }),
    ...(user && { user: user.id }),
    ...(languages && { languages }),
    ...(carried?.ref && { credential: { id: carried.ref.id, secretHash: carried.ref.secretHash } }),
    ...(carried && { until: clock() + carried.ttlSeconds * 1000 }),
  };
}

/** The message again, with what it is about as that is now; what is gone is left out. */
export async function noticeOf(
  {
    config,
    users,
  }: {
    config: Pick<Config, 'client' | 'connection' | 'organization'>;
    users: Pick<Users, 'get'>;
  },
  content: LetterContent,
): Promise<Notice> {
  const { kind: _kind, credential: _credential, until: _until, decoy: _decoy, ...kept } = content;
  const { application, connection, organization, user, ...plain } = kept;
  return {
    ...plain,
    application: application === undefined ? undefined : await config.client(application),
    connection: connection === undefined ? undefined : await config.connection(connection),
    organization: organization === undefined ? undefined : await config.organization(organization),
    user: user === undefined ? undefined : await users.get(user),
  };
}
