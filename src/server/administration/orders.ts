// The orders of commands about a tenant. The server that has the store open carries them out, or the command itself
// if there is none.
import type { Logger } from 'pino';
import { z } from 'zod';
import { openHolder } from '../../capabilities/signing/holder.ts';
import { rotateSigningKeys } from '../../capabilities/signing/keys.ts';
import { metadataFaults } from '../../features/connections/samlp/metadata-faults.ts';
import { createLink, type LinkDependencies } from '../../features/console/administrators/links.ts';
import { changeRoleAsOperator, memberOf } from '../../features/console/administrators/members.ts';
import { consoleOrigin } from '../../features/console/settings.ts';
import { managementAudience } from '../../features/management/audience.ts';
import { removeConnectionParts } from '../../features/management/resources/connections.ts';
import { createOutbound, outboundRules } from '../../http/outbound.ts';
import type { Records } from '../../records/collections.ts';
import { normalizeEmail } from '../../records/email.ts';
import { SIGNING_ALGS, type SigningAlg } from '../../records/signing-algs.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Waits } from '../../runtime/waits.ts';
import { outboundAllow, SECRET_SETTINGS, type Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { type ApplyDependencies, applyTenant, planTenant } from '../../tenant/apply.ts';
import { type Change, subjectOf } from '../../tenant/changes.ts';
import type { AppliedCollection } from '../../tenant/declared-records.ts';
import type { Events } from '../../tenant/events.ts';
import { productionFaults } from '../../tenant/examples.ts';
import { exportTenant } from '../../tenant/export.ts';
import { readTenant, TenantFault } from '../../tenant/load.ts';
import { keysFor } from '../../tenant/snapshot.ts';
import type { Administrators } from '../../users/administrators.ts';
import { decideAccount } from './account.ts';
import { storedAction } from './action-test.ts';
import { createAdmin } from './admin.ts';
import { inspect } from './inspect.ts';
import { recordOrder } from './order-events.ts';
import { connectionScript, TESTABLE_SCRIPTS } from './script-test.ts';

/** All orders; others are refused. */
export const orderSchema = z.discriminatedUnion('command', [
  z.strictObject({ command: z.enum(['apply', 'plan']), tenant: z.record(z.string(), z.unknown()) }),
  z.strictObject({ command: z.enum(['export', 'inspect']) }),
  z.strictObject({ command: z.literal('rotate'), alg: z.enum(SIGNING_ALGS).optional() }),
  z.strictObject({
    command: z.literal('script'),
    connection: z.string().min(1).max(255),
    script: z.enum(TESTABLE_SCRIPTS),
  }),
  z.strictObject({ command: z.literal('action'), name: z.string().min(1).max(255), isDraft: z.boolean() }),
  z.strictObject({
    command: z.literal('account'),
    user: z.string().min(1).max(1024),
    join: z.string().min(1).max(512).optional(),
    keep: z.boolean().optional(),
  }),
  z.strictObject({ command: z.literal('admin'), name: z.string().min(1).max(255) }),
  z.strictObject({ command: z.literal('administrator'), email: z.string().min(1).max(320) }),
]);

export type Order = z.output<typeof orderSchema>;

/** Carries out an order, at the server that has the store open or in this process. */
export type SendOrder = (settings: Settings, order: Order) => Promise<unknown>;

export interface OrderDependencies {
  settings: Settings;
  store: Store;
  users: ApplyDependencies['users'];
  administrators: Administrators;
  clock: Clock;
  random: Random;
  waits?: Waits;
  log: Pick<Logger, 'info' | 'error'>;
  events: Pick<Events, 'record'>;
  /** Ends a user's sessions and tokens. */
  endSessions(userId: string): Promise<void>;
  /** Continues recorded removals. Without a server, the next start does. */
  resumeRemovals(): void;
  /** Checks in the background whether the providers of connections answer. Without a server, the next start does. */
  checkConnections(): Promise<void>;
}

/** Carries out an order. @returns what the command prints. @throws TenantFault; Error with the reason */
export async function runOrder(deps: OrderDependencies, order: Order): Promise<unknown> {
  const { store } = deps;
  switch (order.command) {
    case 'apply':
    case 'plan':
      return applyOrPlan(deps, order.tenant, order.command);
    case 'export':
      return exportTenant(store);
    case 'inspect':
      return inspect(deps);
    case 'script':
      return connectionScript(deps, order);
    case 'action':
      return storedAction(deps, order);
    case 'account':
      return decideAccount(deps, order);
    case 'rotate': {
      const before = await signingKey(store, order.alg);
      const keys = await rotate(deps, order.alg);
      const [first, ...others] = keys;
      const after = { kid: first?.kid, ...(others.length > 0 && { keys }) };
      recordOrder(deps.events, 'keys rotate', 'Rotate the signing keys', { before, after });
      deps.log.info({ keys }, 'the signing keys were rotated by a command');
      return keys;
    }
    case 'administrator': {
      const consoleUrl = consoleOrigin(deps.settings);
      const link = await ownerLink({ ...deps, consoleUrl, wallClock: deps.clock }, order.email);
      const after = { administrator: order.email, role: 'owner' };
      recordOrder(deps.events, 'admin create --email', 'Make a link for an owner of the console', { after });
      deps.log.info({ email: order.email }, 'a link for an owner of the console was made by a command');
      return link;
    }
    case 'admin': {
      const admin = await createAdmin(deps, order.name);
      const after = { client_id: admin.client_id, name: order.name };
      recordOrder(deps.events, 'admin create', 'Make an application for the Management API', { after });
      deps.log.info(
        { client_id: admin.client_id },
        'an application for the Management API was made by a command',
      );
      return admin;
    }
  }
}

async function applyOrPlan(
  deps: OrderDependencies,
  document: object,
  command: 'apply' | 'plan',
): Promise<string[]> {
  const { store, users, random, settings, log } = deps;
  // Checked again here, because the server's settings decide, not those of the command's environment.
  const { tenant } = readTenant(document);
  const faults = [
    ...metadataFaults(tenant),
    ...(settings.production ? productionFaults(tenant, settings) : []),
  ];
  if (faults.length > 0) throw new TenantFault(faults);
  const applyDependencies = {
    store,
    users,
    random,
    managementAudience: managementAudience(settings.issuer),
    beforeRemoval: (collection: AppliedCollection, record: object) => removeParts(store, collection, record),
    onChange: (change: Change) =>
      recordOrder(deps.events, 'apply', `Apply the tenant file: ${subjectOf(change)}`, change),
  };
  const withUsers = !settings.production;
  if (command === 'plan') return planTenant(applyDependencies, tenant, { users: withUsers });
  const changed = await applyTenant(applyDependencies, tenant, { mode: 'match', users: withUsers });
  deps.resumeRemovals();
  await deps.checkConnections();
  log.info({ changes: changed.length }, 'a tenant file was applied by a command');
  return changed;
}

/** Rotates the signing keys. @throws AuthError 409 if the keys are in an external key store that has no next one */
function rotate({ settings, store, clock, log, waits }: OrderDependencies, alg: SigningAlg | undefined) {
  const outbound = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  const holder = openHolder(settings.signing, {
    outbound,
    log,
    clock,
    timeout: waits?.signature,
    hidden: SECRET_SETTINGS,
  });
  return rotateSigningKeys(store, clock, new URL(settings.baseUrl).hostname, alg, holder);
}

/** Returns the key that signs tokens. */
async function signingKey(store: Store, alg: SigningAlg = 'RS256'): Promise<{ kid: string } | undefined> {
  const keys = await store.collection('signingKeys').findBy('state', 'current');
  const [key] = keysFor(keys, alg);
  return key === undefined ? undefined : { kid: key.id };
}

// What else is deleted with a record that a tenant file removes, as with one that a call removes.

/** Deletes what belongs to a record alone. */
async function removeParts(store: Store, collection: AppliedCollection, record: object): Promise<void> {
  if (collection === 'connections') await removeConnectionParts(store, (record as Records['connections']).id);
  if (collection === 'documents')
    await store.collection('logStreamPositions').delete((record as Records['documents']).id);
}

// Access to the console for anyone who can read the data directory: for the first owner, and for one who is locked
// out.

/** A link, and whether it is for a new administrator. */
interface OwnerLink {
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
