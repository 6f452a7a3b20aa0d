// Secrets that the hosted service's exports do not show.

/** What the deploy tool writes for a value that it may not show. */
const NOT_SHOWN = '_VALUE_NOT_SHOWN_';

type Item = Readonly<Record<string, unknown>>;

/** Returns a document in which a secret of an action that is not shown has no value, so that it keeps the stored one. */
export function withoutMasks(document: unknown): unknown {
  const sections = Object(document) as Record<string, unknown>;
  const masked = ['actions', 'actionModules'].flatMap((section) => {
    const items = sections[section];
    if (!Array.isArray(items) || !JSON.stringify(items).includes(NOT_SHOWN)) return [];
    return [[section, items.map((item: unknown) => withoutMaskedSecrets(item))] as const];
  });
  return masked.length === 0 ? document : { ...sections, ...Object.fromEntries(masked) };
}

function withoutMaskedSecrets(item: unknown): unknown {
  const { secrets } = Object(item) as { secrets?: unknown };
  if (!Array.isArray(secrets)) return item;
  const shown = (secrets as Item[]).map(({ value, ...secret }) =>
    value === NOT_SHOWN || value === undefined ? secret : { ...secret, value },
  );
  return { ...(item as object), secrets: shown };
}
