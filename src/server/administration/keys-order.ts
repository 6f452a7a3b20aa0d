// The order of `gatehouse keys rotate`.
import { z } from 'zod';
import { openHolder } from '../../capabilities/signing/holder.ts';
import { rotateSigningKeys } from '../../capabilities/signing/keys.ts';
import { createOutbound, outboundRules } from '../../http/outbound.ts';
import { SIGNING_ALGS, type SigningAlg } from '../../records/signing-algs.ts';
import { outboundAllow, SECRET_SETTINGS } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { keysFor } from '../../tenant/snapshot.ts';
import { type OrderDependencies, order, recordOrder } from './order.ts';

/** Returns the keys that sign from now on. */
export const rotate = order({
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
