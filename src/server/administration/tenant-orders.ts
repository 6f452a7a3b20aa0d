// The orders about the tenant file.
import { z } from 'zod';
import { metadataFaults } from '../../features/connections/samlp/metadata-faults.ts';
import { managementAudience } from '../../features/management/audience.ts';
import { removeConnectionParts } from '../../features/management/resources/connections.ts';
import type { Records } from '../../records/collections.ts';
import type { Store } from '../../store/contract.ts';
import { applyTenant, planTenant } from '../../tenant/apply.ts';
import { type Change, subjectOf } from '../../tenant/changes.ts';
import type { AppliedCollection } from '../../tenant/declared-records.ts';
import { productionFaults } from '../../tenant/examples.ts';
import { exportTenant } from '../../tenant/export.ts';
import { readTenant, TenantFault } from '../../tenant/load.ts';
import { type OrderDependencies, order, recordOrder } from './order.ts';

const document = z.strictObject({ tenant: z.record(z.string(), z.unknown()) });

/** Returns a line for each change. */
export const apply = order({ body: document, run: (deps, { tenant }) => applyOrPlan(deps, tenant, 'apply') });

export const plan = order({ body: document, run: (deps, { tenant }) => applyOrPlan(deps, tenant, 'plan') });

/** Returns the tenant file, YAML. */
export const exportOrder = order({ body: z.strictObject({}), run: ({ store }) => exportTenant(store) });

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

/** Deletes what belongs to a record alone. */
async function removeParts(store: Store, collection: AppliedCollection, record: object): Promise<void> {
  if (collection === 'connections') await removeConnectionParts(store, (record as Records['connections']).id);
  if (collection === 'documents')
    await store.collection('logStreamPositions').delete((record as Records['documents']).id);
}
