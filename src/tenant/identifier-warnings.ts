// Warnings about connections whose users are identified by something that their provider may give to somebody else.
import { strategyRecord } from '../records/connections/connections.ts';
import { reassignedText } from '../records/connections/user-identifiers.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';

/** Returns a connection's identifier if it may be reassigned, and what to choose instead; one sentence. */
export function identifierWarning({
  name,
  strategy,
  options,
}: {
  name: string;
  strategy: string;
  options: Readonly<Record<string, unknown>>;
}): string | undefined {
  const identifier = strategyRecord(strategy)?.identifier(options);
  if (identifier?.isReassigned !== 'possible') return undefined;
  const { is, instead = 'use an identifier that is never reassigned' } = identifier;
  return reassignedText({ name, is, instead });
}

/**
 * Returns the warning about addresses that count as verified although administrators of any organization write them: those
 * of the connection's common endpoint.
 */
function trustWarning({ name, strategy, options }: TenantFile['connections'][number]): string | undefined {
  if (strategyRecord(strategy)?.trustsAnybody?.(options) !== true) return undefined;
  return `${name} takes every address as verified, and logs in users of every organization, whose administrators write any address: remove should_trust_email_verified_connection, or switch the common endpoint off`;
}

export function identifierWarnings({ connections }: Pick<TenantFile, 'connections'>): string[] {
  return connections.flatMap((connection, index) =>
    [identifierWarning(connection), trustWarning(connection)].flatMap((warning) =>
      warning === undefined ? [] : [`connections[${index}].options: ${warning}`],
    ),
  );
}
