// The key check value in a PostgreSQL database: it says which key the secrets are sealed with (../sealing/key.ts).
import { CHECK } from '../sealing/open.ts';
import type { Run } from './postgres-pool.ts';

/** Returns the key check value; undefined if none is stored. */
export async function keyCheck(run: Run): Promise<string | undefined> {
  const { rows } = await run({ text: `SELECT data ->> 'value' FROM "keyChecks" WHERE id = $1` }, [CHECK]);
  return rows[0]?.[0] ?? undefined;
}

/** Stores the key check value, in place of an earlier one. */
export async function putKeyCheck(run: Run, value: string): Promise<void> {
  await removeKeyChecks(run, [CHECK]);
  const record = JSON.stringify({ id: CHECK, value });
  await run({ text: 'INSERT INTO "keyChecks" (id, data) VALUES ($1, $2)' }, [CHECK, record]);
}

/** Deletes key check values by id. */
export async function removeKeyChecks(run: Run, ids: readonly string[]): Promise<void> {
  await run({ text: 'DELETE FROM "keyChecks" WHERE id = ANY ($1::text[])' }, [ids]);
}
