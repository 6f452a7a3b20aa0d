// Pages of the applications that registered themselves, those that registered last first. Strangers register them while
// somebody reads the list, so that a page begins after an application, not at a number.
import type { Frozen } from '../../../../records/base/record.ts';
import type { RegistrationRecord } from '../../../../records/clients/registrations.ts';
import type { Filter, Store } from '../../../../store/contract.ts';

interface RegistrationsPage {
  records: readonly Frozen<RegistrationRecord>[];
  /** The `after` of the next page; undefined for the last one. */
  next: string | undefined;
}

/** How applications of strangers became known: by registration, or by a document. */
export type ExternalType = 'dcr' | 'cimd';

export const isOfType = (type: ExternalType): Filter => ({
  field: 'client.external_metadata_type',
  equals: type,
});

/** @param after the place of an application in this order; anything else begins where it would be. */
export async function registrationsAfter(
  store: Pick<Store, 'collection'>,
  { after, take, type }: { after: string | undefined; take: number; type?: ExternalType },
): Promise<RegistrationsPage> {
  const all = [
    ...(after === undefined ? [] : [later(after)]),
    ...(type === undefined ? [] : [isOfType(type)]),
  ];
  const { records } = await store.collection('registrations').list({
    ...(all.length > 0 && { where: { all } }),
    sort: { field: 'created_at', descending: true },
    limit: take + 1,
  });
  const page = records.slice(0, take);
  const last = page.at(-1);
  const hasMore = records.length > take && last !== undefined;
  return { records: page, next: hasMore ? `${last.created_at} ${last.id}` : undefined };
}

/** Selects what comes after a place. Those of one time are in the order of their ids. */
function later(after: string): Filter {
  const [at = '', id = ''] = after.split(' ');
  const isThen: Filter = { field: 'created_at', equals: at };
  const isBefore: Filter = { all: [{ field: 'created_at', to: at }, { not: isThen }] };
  const follows: Filter = { all: [isThen, { field: 'id', from: id }, { not: { field: 'id', equals: id } }] };
  return { any: [isBefore, follows] };
}
