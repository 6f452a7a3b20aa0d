// A provider of the tenant's mail: what its credentials are, and how mail gets to it. Each is a file in this folder and a
// line of `MAIL_PROVIDERS` (src/records/tenant/delivery.ts).
import { z } from 'zod';
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Members, shapeOf, type ValuesOf } from '../base/members.ts';
import type { Mail, Transport } from '../base/message-transport.ts';

/** A mail server (RFC 5321) and its account. */
export interface MailServer {
  host: string;
  port: number;
  /** TLS from the first byte; otherwise STARTTLS. */
  secure: boolean;
  /** Whether plain text is allowed without STARTTLS: for a server on this machine only. */
  allowPlain: boolean;
  user?: string;
  password?: string;
}

/** What providers may use to send mail. */
export interface MailNeeds {
  outbound: Pick<Outbound, 'fetch'>;
  /** The time of day. */
  clock: Clock;
  /** Makes a transport to a mail server. */
  smtp(server: MailServer): Transport<Mail>;
}

/** A provider with the credentials of a tenant. */
export interface TenantMail {
  /** Its address, which the doctor asks; undefined if it does not speak HTTP. */
  address: string | undefined;
  transport(needs: MailNeeds): Transport<Mail>;
}

interface MailProviderDeclaration<M extends Members> {
  /** The `name` of the tenant's `emailProvider`. */
  name: string;
  /** The members of its `credentials`. */
  credentials: M;
  /**
   * The member that says where the hidden ones are sent; undefined if the provider has its own address. A change of it
   * must contain the hidden ones again: whoever changes it would receive those that are kept.
   */
  sentTo: (keyof M & string) | undefined;
  /** Returns undefined if the credentials lack what the provider needs. */
  open(credentials: ValuesOf<M>): TenantMail | undefined;
}

/** A {@link MailProviderDeclaration} for every type of credentials: it reads them itself. */
export interface MailProvider {
  name: string;
  members: Members;
  sentTo: string | undefined;
  /** Whether actions of the tenant deliver its mail; the transport is for a tenant that has bound none. */
  isByActions: boolean;
  open(credentials: unknown): TenantMail | undefined;
}

export function mailProvider<M extends Members>({
  name,
  credentials: members,
  sentTo,
  open,
}: MailProviderDeclaration<M>): MailProvider {
  const schema = z.object(shapeOf(members));
  return {
    name,
    members,
    sentTo,
    isByActions: false,
    open: (credentials) => {
      const own = schema.safeParse(credentials).data as ValuesOf<M> | undefined;
      return own && open(own);
    },
  };
}
