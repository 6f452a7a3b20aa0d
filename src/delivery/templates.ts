// TEMPORARY stand-in
import type { Logger } from 'pino';
import type { Frozen } from '../store/contract.ts';
import type { TenantRecord } from '../tenant/schema.ts';
import type { Templates } from './deliver.ts';
export function createTemplates({
  settings,
}: {
  directory: string;
  settings: () => Frozen<TenantRecord>;
  mailFrom: string;
  log: Logger;
}): Templates {
  return {
    render: async (kind, notice) =>
      kind.endsWith('sms')
        ? {
            channel: 'sms',
            to: notice.to,
            text: `${kind} ${notice.code}`,
            ...(notice.code && { code: notice.code }),
          }
        : {
            channel: 'email',
            to: notice.to,
            from: 'x@localhost',
            subject: kind,
            text: `${notice.code ?? notice.url}`,
            html: '<p>',
            ...(notice.code && { code: notice.code }),
            ...(notice.url && { link: notice.url }),
          },
    settings: (kind) => {
      const { emailTemplates = [] } = settings() as { emailTemplates?: Record<string, unknown>[] };
      const own = emailTemplates.find(({ template }) => template === kind) ?? {};
      return {
        enabled: own.enabled !== false,
        urlLifetimeInSeconds: Number(own.urlLifetimeInSeconds ?? 432000),
        ...(typeof own.resultUrl === 'string' && { resultUrl: own.resultUrl }),
        includeEmailInRedirect: own.includeEmailInRedirect !== false,
      };
    },
  };
}
