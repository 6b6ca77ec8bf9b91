"""Read pools and tables from files and frames as numbers, and write results to files."""

from functools import partial
from typing import TYPE_CHECKING

from evgp._moved import find
from evgp.datasets.arrays import read_array as read_array
from evgp.datasets.cache import PickFile as PickFile
from evgp.datasets.cache import array_file as array_file
from evgp.datasets.cache import cache_folder as cache_folder
from evgp.datasets.cache import check_document as check_document
from evgp.datasets.cache import fingerprint as fingerprint
from evgp.datasets.cache import in_use as in_use
from evgp.datasets.cache import signed as signed
from evgp.datasets.cache import verify as verify
from evgp.datasets.columns import plain as plain
from evgp.datasets.dataset import Dataset as Dataset
from evgp.datasets.dataset import Kind as Kind
from evgp.datasets.encode import ArrayCode as ArrayCode
from evgp.datasets.encode import Encoder as Encoder
from evgp.datasets.encode import Fitted as Fitted
from evgp.datasets.encode import Streamed as Streamed
from evgp.datasets.encode import Survey as Survey
from evgp.datasets.encode import step_of as step_of
from evgp.datasets.files import atomic as atomic
from evgp.datasets.files import check_new as check_new
from evgp.datasets.files import check_room as check_room
from evgp.datasets.files import check_writable as check_writable
from evgp.datasets.files import copy_files as copy_files
from evgp.datasets.files import naming as naming
from evgp.datasets.files import reserve as reserve
from evgp.datasets.files import write_rows as write_rows
from evgp.datasets.files import write_text as write_text
from evgp.datasets.files import written as written
from evgp.datasets.folders import ImageData as ImageData
from evgp.datasets.frames import array_of as array_of
from evgp.datasets.frames import check_order as check_order
from evgp.datasets.frames import check_same_rows as check_same_rows
from evgp.datasets.frames import opened as opened
from evgp.datasets.frames import picked_frame as picked_frame
from evgp.datasets.frames import table_of as table_of
from evgp.datasets.images import ArrayPictures as ArrayPictures
from evgp.datasets.images import Images as Images
from evgp.datasets.images import pictures_of as pictures_of
from evgp.datasets.images import read_images as read_images
from evgp.datasets.labelled import Labelled as Labelled
from evgp.datasets.labelled import ids as ids
from evgp.datasets.labelled import read_labelled as read_labelled
from evgp.datasets.look import TableReport as TableReport
from evgp.datasets.named import Known as Known
from evgp.datasets.named import load as load
from evgp.datasets.named import locate as locate
from evgp.datasets.named import names as names
from evgp.datasets.options import ReadOptions as ReadOptions
from evgp.datasets.options import split as split
from evgp.datasets.own import load_csv as load_csv
from evgp.datasets.pool_data import ArrayData as ArrayData
from evgp.datasets.pool_data import FileData as FileData
from evgp.datasets.pool_data import PoolData as PoolData
from evgp.datasets.pool_data import TableData as TableData
from evgp.datasets.pool_data import from_array as from_array
from evgp.datasets.pool_data import from_table as from_table
from evgp.datasets.pool_data import is_table as is_table
from evgp.datasets.read import look as look
from evgp.datasets.read import read_columns as read_columns
from evgp.datasets.read import read_for_network as read_for_network
from evgp.datasets.read import read_pool as read_pool
from evgp.datasets.read import read_with as read_with
from evgp.datasets.samples import Columned as Columned
from evgp.datasets.samples import Samples as Samples
from evgp.datasets.samples import is_samples as is_samples
from evgp.datasets.samples import stack as stack
from evgp.datasets.samples import subset as subset
from evgp.datasets.saved import load_selection as load_selection
from evgp.datasets.saved import save_selection as save_selection
from evgp.datasets.streamed import open_pool as open_pool
from evgp.datasets.tables import Cells as Cells
from evgp.datasets.tables import Table as Table
from evgp.datasets.tables import read_table as read_table

if not TYPE_CHECKING:
    __getattr__ = partial(find, __name__)
