"""Embedders: texts and images as vectors."""

from evgp.embedders.embedder import Embedder as Embedder
from evgp.embedders.embedder import steady_vectors as steady_vectors
from evgp.embedders.embedder import vectors_of as vectors_of
from evgp.embedders.modules import FunctionEmbedder as FunctionEmbedder
from evgp.embedders.modules import ModuleEmbedder as ModuleEmbedder
from evgp.embedders.named import embedder_of as embedder_of
from evgp.embedders.sentences import LoadedSentences as LoadedSentences
from evgp.embedders.sentences import SentenceEmbedder as SentenceEmbedder
from evgp.embedders.tfidf import FittedTfidf as FittedTfidf
from evgp.embedders.tfidf import Tfidf as Tfidf
