// `/organizations/{id}/invitations`: invitations to become a member, with roles.
import { z } from 'zod';
import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import { withParameters } from '../../../../http/server/body.ts';
import { normalizeEmail } from '../../../../records/base/email.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import { loginAddressOf } from '../../../../records/clients/login-address.ts';
import type { Client, Organization } from '../../../../records/collections.ts';
import type { InvitationRecord } from '../../../../records/users/organizations.ts';
import { type Clock, epochSeconds } from '../../../../runtime/clock.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import { hashSecret } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { idOf } from '../../ids.ts';
import { arraySource, listAnswer, mapped, pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { notFound } from '../../resource.ts';
import { organizationOf } from './organizations.ts';
import { requireRoles } from './roles-calls.ts';

export interface InvitationsDependencies {
  store: Store;
  random: Random;
  /** The clock that decides when an invitation expires; it never goes back. */
  clock: Clock;
  /** ISO 8601. */
  now(): string;
  messages: Pick<Messages, 'prepare'>;
}

/** In seconds. */
const DEFAULT_LIFETIME_SECONDS = 604_800;
const MAX_LIFETIME_SECONDS = 2_592_000;

const object = z.record(z.string(), z.unknown());
const body = z.strictObject({
  inviter: z.strictObject({ name: z.string().min(1).max(300) }),
  invitee: z.strictObject({
    email: z
      .string()
      .max(320)
      .transform((address, context) => {
        const email = normalizeEmail(address);
        if (email !== undefined) return email;
        context.addIssue({ code: 'custom', message: "Object didn't pass validation for format email" });
        return z.NEVER;
      }),
  }),
  client_id: z.string().min(1).max(64),
  connection_id: z.string().min(1).max(64).optional(),
  app_metadata: object.optional(),
  user_metadata: object.optional(),
  /** 0 means the default lifetime. */
  ttl_sec: z.number().int().min(0).max(MAX_LIFETIME_SECONDS).optional(),
  roles: z.array(z.string().min(1).max(64)).min(1).max(50).optional(),
  send_invitation_email: z.boolean().optional(),
});

type Body = z.output<typeof body>;
type Invitation = Frozen<InvitationRecord>;

const missing = notFound('The invitation does not exist', 'inexistent_invitation');

// docs/understand/decisions/organizations.md#the-link-of-an-invitation-is-returned-only-once
/** Returns an invitation as the API shows it. Only the response to its creation has the link and the ticket. */
function view({ ticketHash: _, expiresAt: _gone, ...invitation }: Invitation) {
  return invitation;
}

async function invitationOf(store: Store, params: Readonly<Record<string, string>>): Promise<Invitation> {
  const { id } = await organizationOf(store, params.id);
  const found = await store.collection('invitations').get(params.invitation_id ?? '');
  if (found === undefined || found.organization_id !== id) throw missing();
  return found;
}

async function defaultRoute(store: Store): Promise<string | undefined> {
  const route = (await store.collection('tenant').get('tenant'))?.tenant.default_redirection_uri;
  return typeof route === 'string' ? route : undefined;
}

/**
 * Returns the client of an invitation and its login URL.
 * @throws AuthError 4xx if the invitation could not be accepted
 */
async function clientAndAddress(store: Store, organization: Organization, request: Body) {
  const client = await store.collection('clients').get(request.client_id);
  if (client === undefined) throw apiError(404, 'The client does not exist', 'inexistent_client');
  // The tenant's default login route serves clients that have none.
  const address = loginAddressOf(client, organization) ?? (await defaultRoute(store));
  if (address === undefined || !URL.canParse(address)) {
    throw apiError(400, 'A default login route is required to generate the invitation url.', 'invalid_body');
  }
  if ((client.organization_usage ?? 'deny') === 'deny') {
    throw apiError(400, 'The client does not allow users of organizations to log in.', 'invalid_body');
  }
  const enabled = (organization.enabled_connections ?? []) as { connection_id: string }[];
  if (
    request.connection_id !== undefined &&
    !enabled.some(({ connection_id }) => connection_id === request.connection_id)
  ) {
    throw apiError(404, 'The connection does not exist', 'inexistent_connection');
  }
  await requireRoles(store, request.roles ?? [], organization.id);
  return { client, address };
}

function invitationUrl(address: string, organization: Organization, ticket: string): string {
  return withParameters(address, {
    invitation: ticket,
    organization: organization.id,
    organization_name: organization.name,
  });
}

/** Stores a new invitation and sends its e-mail. @returns the invitation, its ticket and link. */
async function invite(deps: InvitationsDependencies, organization: Organization, request: Body) {
  const { store, random, clock, now } = deps;
  const { client, address } = await clientAndAddress(store, organization, request);
  const { ttl_sec = 0, send_invitation_email: sendsEmail = true, roles = [], ...rest } = request;
  const lifetime = ttl_sec === 0 ? DEFAULT_LIFETIME_SECONDS : ttl_sec;
  const ticket = random(32).toString('base64url');
  const created_at = now();
  const { app_metadata = {}, user_metadata = {}, connection_id, ...invitation } = rest;
  const record: InvitationRecord = {
    id: idOf('uinv', random),
    organization_id: organization.id,
    ...invitation,
    ...(connection_id === undefined ? {} : { connection_id }),
    app_metadata,
    user_metadata,
    roles: [...new Set(roles)],
    created_at,
    expires_at: new Date(Date.parse(created_at) + lifetime * 1000).toISOString(),
    ticketHash: hashSecret(ticket),
    expiresAt: epochSeconds(clock) + lifetime,
  };
  const url = invitationUrl(address, organization, ticket);
  const email = sendsEmail ? prepareEmail(deps, { record, organization, client, url, lifetime }) : undefined;
  await store.batch([{ collection: 'invitations', insert: record }, ...(email ? [email.write] : [])]);
  email?.post();
  return { record, ticket, url };
}

interface InvitationEmail {
  record: InvitationRecord;
  organization: Organization;
  client: Client;
  url: string;
  lifetime: number;
}

function prepareEmail(
  { messages }: InvitationsDependencies,
  { record, organization, client, url, lifetime }: InvitationEmail,
) {
  return messages.prepare('user_invitation', {
    to: record.invitee.email,
    application: client,
    organization,
    inviter: record.inviter,
    url,
    lifetimeInSeconds: lifetime,
  });
}

const call = callsWith<InvitationsDependencies>();
const path = '/organizations/:id/invitations';
const noun = 'organization_invitations';
const sort = z
  .string()
  .regex(/^created_at:-?1$/, 'String does not match pattern ^created_at:(1|-1)$')
  .optional();

export const invitationCalls: Call<InvitationsDependencies>[] = [
  call({
    method: 'GET',
    path,
    scopes: [`read:${noun}`],
    summary: 'Get the invitations to an organization',
    query: z.strictObject({ ...pageQuery, ...fieldsQuery, sort }),
    handle: async ({ store }, { params, query }) => {
      const { id } = await organizationOf(store, params.id);
      const found = await store.collection('invitations').findBy('organization', id);
      const order = query.sort === 'created_at:1' ? 1 : -1;
      const key = (one: Invitation) => `${one.created_at}\n${one.id}`;
      const sorted = [...found].sort((a, b) => (key(a) < key(b) ? -order : order));
      const shown = mapped(
        arraySource(sorted, (one) => one.id),
        (one: Invitation) => selectFields(view(one), query),
      );
      return ok(await listAnswer(query, shown, { key: 'invitations', hasTotal: false }));
    },
  }),
  call({
    method: 'POST',
    path,
    scopes: [`create:${noun}`],
    summary: 'Invite somebody to an organization',
    body,
    handle: async (deps, { params, body: asked }) => {
      const organization = await organizationOf(deps.store, params.id);
      const { record, ticket, url } = await invite(deps, organization, asked);
      return ok({ ...view(record), ticket_id: ticket, invitation_url: url }, { after: view(record) });
    },
  }),
  call({
    method: 'GET',
    path: `${path}/:invitation_id`,
    scopes: [`read:${noun}`],
    summary: 'Get an invitation to an organization',
    query: z.strictObject(fieldsQuery),
    handle: async ({ store }, { params, query }) =>
      ok(selectFields(view(await invitationOf(store, params)), query)),
  }),
  call({
    method: 'DELETE',
    path: `${path}/:invitation_id`,
    scopes: [`delete:${noun}`],
    summary: 'Delete an invitation to an organization',
    handle: async ({ store }, { params }) => {
      const found = await invitationOf(store, params);
      await store.collection('invitations').delete(found.id);
      return noContent({ before: view(found) });
    },
  }),
];
