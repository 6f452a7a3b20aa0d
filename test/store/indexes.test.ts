// Queries use the indexes of the fields that are declared as indexed; the engine in memory answers them the same
// without indexes.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import type { Filter, Query, Store } from '../../src/store/contract.ts';
import { createCollection } from '../../src/store/memory/collection.ts';
import { createTable } from '../../src/store/memory/table.ts';
import { collectionSpecs } from '../../src/store/record.ts';
import { sqliteDialect } from '../../src/store/sql/dialect.ts';
import { queryStatements } from '../../src/store/sql/sql-filter.ts';
import { createDatabase } from '../../src/store/sqlite/sqlite-file.ts';
import { searchCases } from './contract-queries.ts';

const indexed = collectionSpecs().flatMap(([name, spec]) =>
  spec.kept === undefined
    ? [...(spec.indexed ?? []), ...(spec.indexedText ?? [])].map((field) => ({ name, spec, field }))
    : [],
);

describe('queries of the database', () => {
  let directory: string;
  let database: DatabaseSync;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-plans-'));
    database = createDatabase(join(directory, 'gatehouse.db'));
  });
  after(async () => {
    database.close();
    await rm(directory, { recursive: true });
  });

  for (const { name, spec, field } of indexed) {
    it(`of ${name} by ${field} use the field's index to filter and to sort`, () => {
      const where: Filter[] = [
        { field, equals: 'x' },
        { field, in: ['x', 'y'] },
        { field, prefix: 'x' },
        { field, from: 'x', to: 'y' },
      ];
      const queries: Query[] = [
        ...where.map((one) => ({ where: one, total: 1000 })),
        { sort: { field } },
        { sort: { field, descending: true }, page: 3 },
      ];
      for (const query of queries) {
        const { page, total } = queryStatements({ name, spec }, query, 0, sqliteDialect);
        for (const { sql, parameters } of query.total === undefined ? [page] : [page, total]) {
          const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
          const text = plan.map(({ detail }) => detail).join('\n');
          expect(text, sql).to.match(new RegExp(`USING (COVERING )?INDEX ${name}_by_${field}`));
          // A temporary order is only allowed for sorting equal values by id.
          if (query.sort !== undefined) expect(text, sql).not.to.match(/TEMP B-TREE FOR ORDER BY/);
        }
      }
    });
  }
});

describe('queries in memory', () => {
  searchCases((behaviour, run) =>
    it(behaviour, async () => {
      const time = { now: 0 };
      const [, spec] = collectionSpecs().find(([name]) => name === 'users') ?? [];
      if (spec === undefined) throw new Error('there are no users');
      const users = createCollection(
        createTable('users', spec, () => time.now),
        () => undefined,
        () => undefined,
      );
      // The tests use no other part of the store.
      const store = { collection: () => users } as unknown as Store;
      await run({ store, reopen: async () => store, cleanup: async () => {} }, time);
    }),
  );
});
