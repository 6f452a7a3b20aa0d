// `/prompts/{prompt}/custom-text/{language}` and `/prompts/{prompt}/partials`: custom texts of pages.
// docs/understand/decisions/login-pages.md#partials-of-prompts-are-stored-for-tools-and-not-shown
import { z } from 'zod';
import { type Call, callsWith, ok } from '../../call.ts';
import { type DocumentDependencies, storedObject } from '../../document-resource.ts';
import { checkedSegment, PROMPT } from '../../path-segments.ts';
import { renderingCalls } from './rendering.ts';

export const LANGUAGE = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$/;

const texts = z.record(z.string().max(255), z.record(z.string().max(255), z.string().max(4096).nullable()));
const partials = z.record(z.string().max(255), z.unknown());

const customTextId = (prompt: string, language: string): string => `custom-text/${prompt}/${language}`;

const call = callsWith<DocumentDependencies>();

function calls(): Call<DocumentDependencies>[] {
  const textId = ({ prompt, language }: Readonly<Record<string, string>>) =>
    customTextId(checkedSegment(prompt, PROMPT, 'prompt'), checkedSegment(language, LANGUAGE, 'language'));
  const partialsId = ({ prompt }: Readonly<Record<string, string>>) =>
    `partials/${checkedSegment(prompt, PROMPT, 'prompt')}`;
  return [
    call({
      method: 'GET',
      path: '/prompts/:prompt/custom-text/:language',
      scopes: ['read:prompts'],
      summary: 'Get the custom text of a prompt',
      handle: async (deps, { params }) => ok(await storedObject(deps).read(textId(params))),
    }),
    call({
      method: 'PUT',
      path: '/prompts/:prompt/custom-text/:language',
      scopes: ['update:prompts'],
      summary: 'Set the custom text of a prompt',
      body: texts,
      handle: async (deps, { params, body }) => {
        const id = textId(params);
        const before = await storedObject(deps).read(id);
        await storedObject(deps).put(id, 'custom-text', body);
        return ok(body, { before, after: body });
      },
    }),
    call({
      method: 'GET',
      path: '/prompts/:prompt/partials',
      scopes: ['read:prompts'],
      summary: 'Get the partials of a prompt',
      handle: async (deps, { params }) => ok(await storedObject(deps).read(partialsId(params))),
    }),
    call({
      method: 'PUT',
      path: '/prompts/:prompt/partials',
      scopes: ['update:prompts'],
      summary: 'Set the partials of a prompt',
      body: partials,
      handle: async (deps, { params, body }) => {
        const id = partialsId(params);
        const before = await storedObject(deps).read(id);
        await storedObject(deps).put(id, 'partials', body);
        return ok(body, { before, after: body });
      },
    }),
  ];
}

export const promptTextCalls: Call<DocumentDependencies>[] = [...calls(), ...renderingCalls];
