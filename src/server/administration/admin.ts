// The orders of `gatehouse admin create`, which give access to anyone who can read the data directory: to the Management
// API by its first client, without which nobody could call it to create others; to the console for the first owner, and
// for one who is locked out.
import { z } from 'zod';
import {
  changeRoleAsOperator,
  memberOf,
} from '../../features/console/administrators/console-administrator-members.ts';
import { createLink, type LinkDependencies } from '../../features/console/administrators/links.ts';
import { consoleOrigin } from '../../features/console/console-settings.ts';
import { idOf, letters } from '../../features/management/ids.ts';
import { managementAudience } from '../../features/management/management-audience.ts';
import { normalizeEmail } from '../../records/base/email.ts';
import { clientGrantSchema } from '../../records/clients/apis.ts';
import { clientSchema } from '../../records/clients/clients.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { defaultGrantTypes } from '../../tenant/declared-records.ts';
import { order, recordOrder } from './order.ts';

/** Returns the credentials of a new client. */
export const admin = order({
  body: z.strictObject({ name: z.string().min(1).max(255) }),
  run: async (deps, { name }) => {
    const created = await createAdmin(deps, name);
    const after = { client_id: created.client_id, name };
    recordOrder(deps.events, 'admin create', 'Make an application for the Management API', { after });
    deps.log.info(
      { client_id: created.client_id },
      'an application for the Management API was made by a command',
    );
    return created;
  },
});

/** Returns a link for an owner of the console. */
export const administrator = order({
  body: z.strictObject({ email: z.string().min(1).max(320) }),
  run: async (deps, { email }) => {
    const consoleUrl = consoleOrigin(deps.settings);
    const link = await ownerLink({ ...deps, consoleUrl, wallClock: deps.clock }, email);
    const after = { administrator: email, role: 'owner' };
    recordOrder(deps.events, 'admin create --email', 'Make a link for an owner of the console', { after });
    deps.log.info({ email }, 'a link for an owner of the console was made by a command');
    return link;
  },
});

export interface Admin {
  /** The host with its port, unless the port is 443. */
  domain: string;
  client_id: string;
  client_secret: string;
}

/**
 * Creates a client with all scopes of the Management API.
 * @returns its credentials; no API call shows the secret.
 */
async function createAdmin(
  {
    store,
    random,
    settings,
  }: { store: Store; random: Random; settings: Pick<Settings, 'baseUrl' | 'issuer'> },
  name: string,
): Promise<Admin> {
  const client_id = letters(32, random);
  const client_secret = random(48).toString('base64url');
  const client = clientSchema.parse({
    client_id,
    client_secret,
    name,
    app_type: 'non_interactive',
    token_endpoint_auth_method: 'client_secret_post',
  });
  const grant = clientGrantSchema.parse({
    client_id,
    audience: managementAudience(settings.issuer),
    // Includes the scopes of later releases.
    allow_all_scopes: true,
    subject_type: 'client',
  });
  await store.collection('clients').insert({
    ...client,
    id: client_id,
    grant_types: defaultGrantTypes(client, 'client_secret_post'),
  });
  await store.collection('clientGrants').insert({ ...grant, id: idOf('cgr', random) });
  return { domain: new URL(settings.baseUrl).host, client_id, client_secret };
}

/** A link, and whether it is for a new administrator. */
export interface OwnerLink {
  url: string;
  isNew: boolean;
}

/**
 * Creates a link with which somebody becomes an owner of the console. An existing administrator becomes an owner at
 * once, and sets a new password with the link.
 * @throws Error if the e-mail address is not valid, or too many links are open.
 */
async function ownerLink(deps: LinkDependencies, address: string): Promise<OwnerLink> {
  const email = normalizeEmail(address);
  if (email === undefined) throw new Error(`${address} is no e-mail address`);
  const [user] = await deps.administrators.withEmail(email);
  const member = user && (await memberOf(deps, user.id));
  if (user === undefined || member === undefined) {
    return { url: await createOwnerLink(deps, { email, role: 'owner' }), isNew: true };
  }
  await changeRoleAsOperator(deps, user.id, 'owner');
  return { url: await createOwnerLink(deps, { email, user_id: user.id }), isNew: false };
}

async function createOwnerLink(
  ...request: [LinkDependencies, Parameters<typeof createLink>[1]]
): Promise<string> {
  const url = await createLink(...request, undefined);
  if (url === undefined) throw new Error('too many links are out: they end after three days');
  return url;
}
