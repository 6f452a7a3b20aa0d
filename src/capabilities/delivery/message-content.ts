// The content of a stored message. It refers to records by their ids, which are read when the message is sent.
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Users } from '../../users/users.ts';
import type { CredentialRef, MessageCredential, MessageKind, Notice } from './messages.ts';

/** The stored content, JSON. */
export interface MessageContent
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
    | 'isEnrollment'
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
  /** The credential in the message. */
  credential?: CredentialRef;
  /** The message is not sent after this time, epoch milliseconds. */
  until?: number;
  /** Set on a message that is stored and never sent. */
  decoy?: true;
}

/** Returns the content that is stored for a message. */
export function contentOf(
  kind: MessageKind,
  notice: Notice,
  { credential, clock }: { credential?: MessageCredential | undefined; clock: Clock },
): MessageContent {
  const { application, connection, organization, user, languages, ...plain } = notice;
  return {
    kind,
    ...plain,
    ...(application && { application: application.client_id }),
    ...(connection && { connection: connection.name }),
    ...(organization && { organization: organization.id }),
    ...(user && { user: user.id }),
    ...(languages && { languages }),
    ...(credential?.ref && { credential: { id: credential.ref.id, secretHash: credential.ref.secretHash } }),
    ...(credential && { until: clock() + credential.ttlSeconds * 1000 }),
  };
}

/**
 * Returns the message of a stored content, with the records as they are now. Records that were removed are left out.
 */
export async function noticeOf(
  {
    config,
    users,
  }: {
    config: Pick<Config, 'client' | 'connection' | 'organization'>;
    users: Pick<Users, 'get'>;
  },
  content: MessageContent,
): Promise<Notice> {
  const { kind: _kind, credential: _credential, until: _until, decoy: _decoy, ...stored } = content;
  const { application, connection, organization, user, ...plain } = stored;
  return {
    ...plain,
    application: application === undefined ? undefined : await config.client(application),
    connection: connection === undefined ? undefined : await config.connection(connection),
    organization: organization === undefined ? undefined : await config.organization(organization),
    user: user === undefined ? undefined : await users.get(user),
  };
}
