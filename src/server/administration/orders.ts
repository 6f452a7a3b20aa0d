// The orders, by the name of their command.
import { z } from 'zod';
import { openHolder } from '../../capabilities/signing/holder.ts';
import { rotateSigningKeys } from '../../capabilities/signing/signing-key-list.ts';
import { metadataFaults } from '../../features/connections/samlp/metadata-faults.ts';
import { managementAudience } from '../../features/management/management-audience.ts';
import { removeConnectionParts } from '../../features/management/resources/connections/connections-calls.ts';
import { createOutbound, outboundRules } from '../../http/outbound/outbound.ts';
import { SIGNING_ALGS, type SigningAlg } from '../../records/base/signing-algs.ts';
import type { Records } from '../../records/collections.ts';
import type { TenantFile } from '../../records/tenant/tenant.ts';
import { outboundAllow, SECRET_SETTINGS, type Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { type Applied, type ApplyDependencies, applyTenant, planTenant } from '../../tenant/apply.ts';
import { type Change, subjectOf } from '../../tenant/changes.ts';
import { productionFaults } from '../../tenant/examples.ts';
import { readTenant, TenantFault } from '../../tenant/load.ts';
import { exportTenant, tenantDocument } from '../../tenant/tenant-export.ts';
import type { AppliedCollection } from '../../tenant/tenant-records.ts';
import { keysFor } from '../../tenant/tenant-snapshot.ts';
import { account } from './account.ts';
import { action } from './action-test.ts';
import { admin, administrator } from './admin.ts';
import { inspectOrder } from './inspect.ts';
import { moveClose, moveOpen, movePasswords, moveStatus } from './move.ts';
import { moveSessions, moveTokens } from './move-logins.ts';
import { moveSource } from './move-source.ts';
import { type OrderDeclaration, type OrderDependencies, order, recordOrder } from './order.ts';
import { script } from './script-test.ts';
import { distrustKeys, trustedKeys, trustKeys } from './trusted-keys.ts';

// The orders about the tenant file.

const document = z.strictObject({ tenant: z.record(z.string(), z.unknown()) });

/** Returns a line for each change. */
export const apply = order({
  body: document,
  run: async (deps, { tenant }) => (await applied(deps, tenant, 'match')).changes,
});

/** What the file does not have stays. */
const moveConfiguration = order({
  body: document,
  run: (deps, { tenant }) => applied(deps, tenant, 'add'),
});

async function applied(deps: OrderDependencies, tenant: object, mode: 'match' | 'add'): Promise<Applied> {
  const done = await applyFile(deps, checked(deps, tenant), { mode });
  deps.log.info({ changes: done.changes.length }, 'a tenant file was applied by a command');
  return done;
}

export const plan = order({
  body: document,
  run: (deps, { tenant }) =>
    planTenant(applyDependencies(deps, 'plan'), checked(deps, tenant), { users: !deps.settings.production }),
});

/** Returns the tenant file, YAML. */
const exportOrder = order({ body: z.strictObject({}), run: ({ store }) => exportTenant(store) });

/** Returns the same as data, for `gatehouse move out`. */
const leave = order({ body: z.strictObject({}), run: ({ store }) => tenantDocument(store) });

/** Checked again here, because the server's settings decide, not those of the command's environment. */
function checked({ settings }: OrderDependencies, document: object): TenantFile {
  const { tenant } = readTenant(document);
  const faults = [
    ...metadataFaults(tenant),
    ...(settings.production ? productionFaults(tenant, settings) : []),
  ];
  if (faults.length > 0) throw new TenantFault(faults);
  return tenant;
}

/** @param command what log events say that made a change, as it is typed. */
function applyDependencies(deps: OrderDependencies, command: string): ApplyDependencies {
  const { store, users, random, settings } = deps;
  return {
    store,
    users,
    random,
    managementAudience: managementAudience(settings.issuer),
    beforeRemoval: (collection, record) => removeParts(store, collection, record),
    onChange: (change: Change) =>
      recordOrder(deps.events, command, `Apply the tenant file: ${subjectOf(change)}`, change),
  };
}

/**
 * Applies a tenant file that has no faults. Orders do it, and the server itself when the file changes: never two at once.
 */
export async function applyFile(
  deps: OrderDependencies,
  file: TenantFile,
  how: { mode: 'match' | 'add' } | { mode: 'follow'; former: TenantFile },
): Promise<Applied> {
  const command = how.mode === 'follow' ? 'start' : 'apply';
  const done = await applyTenant(applyDependencies(deps, command), file, {
    ...how,
    users: !deps.settings.production,
  });
  deps.resumeRemovals();
  await deps.checkConnections();
  return done;
}

/** Deletes what belongs to a record alone. */
async function removeParts(store: Store, collection: AppliedCollection, record: object): Promise<void> {
  if (collection === 'connections') await removeConnectionParts(store, (record as Records['connections']).id);
  if (collection === 'documents')
    await store.collection('logStreamPositions').delete((record as Records['documents']).id);
}

// The order of `gatehouse keys rotate`.

/** Returns the keys that sign from now on. */
const rotate = order({
  body: z.strictObject({ alg: z.enum(SIGNING_ALGS).optional() }),
  run: async (deps, { alg }) => {
    const before = await signingKey(deps.store, alg);
    const keys = await rotateKeys(deps, alg);
    const [first, ...others] = keys;
    const after = { kid: first?.kid, ...(others.length > 0 && { keys }) };
    recordOrder(deps.events, 'keys rotate', 'Rotate the signing keys', { before, after });
    deps.log.info({ keys }, 'the signing keys were rotated by a command');
    return keys;
  },
});

/** @throws AuthError 409 if the keys are in an external key store that has no next one */
function rotateKeys({ settings, store, clock, log, waits }: OrderDependencies, alg: SigningAlg | undefined) {
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

async function signingKey(store: Store, alg: SigningAlg = 'RS256'): Promise<{ kid: string } | undefined> {
  const keys = await store.collection('signingKeys').findBy('state', 'current');
  const [key] = keysFor(keys, alg);
  return key === undefined ? undefined : { kid: key.id };
}

const ORDERS = {
  apply,
  plan,
  export: exportOrder,
  leave,
  inspect: inspectOrder,
  rotate,
  script,
  action,
  account,
  admin,
  administrator,
  moveConfiguration,
  moveOpen,
  movePasswords,
  moveSessions,
  moveTokens,
  moveClose,
  moveStatus,
  trustKeys,
  distrustKeys,
  trustedKeys,
  moveSource,
};

type Orders = typeof ORDERS;
export type OrderName = keyof Orders;

/** A body without members has a type that excludes all. */
type Members<Body> = string extends keyof Body ? unknown : Body;

/** An order, as it is sent. */
export type Order<Name extends OrderName = OrderName> = {
  [One in Name]: { command: One } & Members<z.input<Orders[One]['body']>>;
}[Name];
export type OrderResult<Name extends OrderName> = Awaited<ReturnType<Orders[Name]['run']>>;

/** Carries out an order, at the server that has the store open or in this process. */
export type SendOrder = <Name extends OrderName>(
  settings: Settings,
  order: Order<Name>,
) => Promise<OrderResult<Name>>;

/** Carries out an order of this process. @throws TenantFault; Error with the reason */
export async function runOrder<Name extends OrderName>(
  deps: OrderDependencies,
  { command, ...body }: Order<Name>,
): Promise<OrderResult<Name>> {
  return (await declarationOf(command).run(deps, body)) as OrderResult<Name>;
}

/** Which of the declarations it is, is known to the types of the callers alone. */
const declarationOf = (command: OrderName) => ORDERS[command] as OrderDeclaration<z.ZodType, unknown>;

/** Returns the work of an order that was received; undefined for one that is not declared, or has another body. */
export function receivedOrder(received: unknown): ((deps: OrderDependencies) => unknown) | undefined {
  const { command, ...given } = Object(received) as Record<string, unknown>;
  if (typeof command !== 'string' || !Object.hasOwn(ORDERS, command)) return undefined;
  const { body, run } = declarationOf(command as OrderName);
  const parsed = body.safeParse(given);
  return parsed.success ? (deps) => run(deps, parsed.data) : undefined;
}
