// `/branding/phone/templates`: the tenant's own texts of messages to phones, and how they are tried.
import { z } from 'zod';
import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import { DeliveryError } from '../../../../records/base/message-transport.ts';
import { usualMembers } from '../../../../records/tenant/documents.ts';
import {
  PHONE_TEMPLATE,
  PHONE_TEMPLATE_TYPES,
  type PhoneTemplateType,
  phoneTemplateContent,
} from '../../../../records/tenant/phone-templates.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { type DocumentDependencies, documentOf, documentView } from '../../document-resource.ts';
import { apiError } from '../../management-errors.ts';
import { flag } from '../../management-fields.ts';
import { merged, notFound } from '../../resource.ts';
import { isObject } from '../../section.ts';
import type { StoredSetting } from '../base/stored-setting.ts';

const NOUN = 'phone_templates';

export const phoneTemplates: StoredSetting = {
  path: `/${PHONE_TEMPLATE}`,
  name: 'phone template',
  noun: NOUN,
  prefix: 'tem',
  key: 'templates',
  hasDates: false,
  required: {},
  optional: { disabled: z.boolean(), content: phoneTemplateContent },
  fixed: { type: z.enum(PHONE_TEMPLATE_TYPES) },
  defaults: usualMembers[PHONE_TEMPLATE],
  uniqueMember: 'type',
  // The deploy tool leaves the syntax out of changes.
  change: (before, changes) =>
    merged(before, {
      ...changes,
      ...(isObject(changes.content) && { content: merged({ ...Object(before.content) }, changes.content) }),
    }),
  unpaged: 'wrapped',
  filters: { disabled: flag.optional() },
};

export interface PhoneTemplateDependencies extends DocumentDependencies {
  messages: Pick<Messages, 'prepare'>;
}

const call = callsWith<PhoneTemplateDependencies>();
const resource = {
  kind: PHONE_TEMPLATE,
  hasDates: false,
  missing: notFound('The phone template does not exist'),
};

export const phoneTemplateCalls: Call<PhoneTemplateDependencies>[] = [
  call({
    method: 'PATCH',
    path: `/${PHONE_TEMPLATE}/:id/reset`,
    scopes: [`update:${NOUN}`],
    summary: 'Replace the text of a phone template by the default',
    body: z.record(z.string(), z.unknown()).nullish(),
    handle: async ({ store, now }, { params }) => {
      const before = await documentOf(store, resource, params.id);
      const updated_at = now();
      const after = await store.collection('documents').update(before.id, (current) => ({
        ...current,
        // Without a text, messages have ours, in the language of their recipient.
        body: { ...current.body, content: { syntax: 'liquid', body: {} } },
        updated_at,
      }));
      if (after === undefined) throw resource.missing();
      const view = documentView(resource, after);
      return ok(view, { before: documentView(resource, before), after: view });
    },
  }),
  call({
    method: 'POST',
    path: `/${PHONE_TEMPLATE}/:id/try`,
    scopes: [`create:${NOUN}`],
    summary: 'Send a message with a phone template, to try it',
    body: z.strictObject({
      to: z.string().regex(/^\+[1-9]\d{1,14}$/, 'must be a phone number in E.164'),
      delivery_method: z.enum(['text', 'voice']).default('text'),
    }),
    handle: async ({ store, messages }, { params, body }) => {
      const { to, delivery_method: method } = body;
      if (method === 'voice') throw apiError(400, 'Messages are not spoken here: use text.', 'invalid_body');
      const { body: template } = await documentOf(store, resource, params.id);
      const type = template.type as PhoneTemplateType;
      const isEnrollment = type === 'otp_enroll';
      const message = messages.prepare('mfa_sms', {
        to,
        code: EXAMPLE_CODE,
        phoneTemplate: type,
        isEnrollment,
      });
      await store.batch([message.write]);
      await message.send().catch((thrown: unknown) => {
        if (!(thrown instanceof DeliveryError)) throw thrown;
        throw apiError(400, `The message was not sent: ${thrown.message}`, 'invalid_operation');
      });
      return { ...ok({ message: 'The message was sent.' }), status: 202 };
    },
  }),
];

const EXAMPLE_CODE = '123456';
